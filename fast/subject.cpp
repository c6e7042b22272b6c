#include "fast/subject.hpp"

#include "fast/device/device.hpp"
#include "fast/models/forms.hpp"
#include "fast/models/loaded_model.hpp"
#include "fast/models/network.hpp"

namespace assay::fast {

const Capabilities& FastSubject::capabilities() const {
  if (capabilities_ == nullptr) {
    Capabilities is;
    is.name = "fast";
    is.device = device_facts().name;
    is.versions = device_facts().versions;
    is.models = network_names();
    is.compute_dtypes = {DType::kF32};
    is.weight_dtypes = {DType::kF32};
    is.caches = {CacheKind::kNone, CacheKind::kDynamic, CacheKind::kStatic};
    is.residencies = {Residency::kResident};
    is.forms = op_forms();
    is.can_reorder = true;
    is.is_accelerated = true;
    capabilities_ = std::make_unique<Capabilities>(std::move(is));
  }
  return *capabilities_;
}

std::unique_ptr<Model> FastSubject::load(const ModelConfig& config, std::shared_ptr<const WeightSource> source,
                                         const LoadOptions& options) {
  return load_model(config, *source, options);
}

OpRunner& FastSubject::op_runner() {
  if (op_runner_ == nullptr) op_runner_ = std::make_unique<OpRunner>();
  return *op_runner_;
}

}  // namespace assay::fast
