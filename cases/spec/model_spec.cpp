#include "cases/spec/model_spec.hpp"

#include "cases/spec/error.hpp"
#include "cases/spec/select.hpp"

namespace assay {

#define ASSAY_MODEL(stem) extern const ModelSpec k_##stem;
#include "cases/spec/models.def"
#undef ASSAY_MODEL

std::span<const ModelSpec> model_specs() {
  static const std::vector<ModelSpec> specs = {
#define ASSAY_MODEL(stem) k_##stem,
#include "cases/spec/models.def"
#undef ASSAY_MODEL
  };
  return specs;
}

const ModelSpec& model_spec(std::string_view name) {
  std::vector<std::string> known;
  for (const ModelSpec& spec : model_specs()) {
    if (spec.name == name) return spec;
    known.emplace_back(spec.name);
  }
  throw InputError("model '" + std::string(name) + "'", "is not known",
                   "nearest: " + nearest_list(std::string(name), known));
}

}  // namespace assay
