// The emulated subject: the reference's own forward passes as an engine computes them that stores 16 bits. What an op
// stores (and so every input of a matrix product, and the keys, values and windows of the caches) is rounded to float16
// or bfloat16; sums, the inside of norms, softmax, rotary and scans, dt, A and the recurrent states are float32. No
// engine: it shows that the gates of golden/low_precision.hpp pass what is right and, with a fault planted
// (runners/selftest), fail what is not.
//
//     assay run aspect:bf16 --subject libassay_emulated.so
#include "reference/subject.hpp"

namespace assay::reference {

class EmulatedSubject final : public ReferenceSubject {
 public:
  EmulatedSubject() : ReferenceSubject("emulated", {DType::kF16, DType::kBF16}) {}
};

}  // namespace assay::reference

ASSAY_EXPORT_SUBJECT(assay::reference::EmulatedSubject)
