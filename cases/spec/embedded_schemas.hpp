// The JSON schemas of the repository, compiled in by cases/CMakeLists.txt; ends with a null name.
#pragma once

namespace assay {

struct EmbeddedSchema {
  const char* name;
  const char* text;
};
extern const EmbeddedSchema kEmbeddedSchemas[];

}  // namespace assay
