// A CONFIG argument: "mamba2/tiny", or the path of a config file.
#pragma once

#include <filesystem>
#include <string>

#include "cases/spec/model_config.hpp"
#include "runners/invocation.hpp"

namespace assay {

// InputError with the nearest configs when there is none of that name.
ModelConfig config_argument(const std::string& name, const Invocation& invocation);

}  // namespace assay
