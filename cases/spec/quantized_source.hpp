// Checkpoints that bitsandbytes saved: linear layers in NF4, everything else as it was. A quantised tensor "x.weight"
// is
//
//   x.weight                                   U8 [ceil(n / 2), 1], the codes
//   x.weight.absmax                            F32 [blocks]; U8 with double quantisation
//   x.weight.quant_map                         F32 [16], the levels
//   x.weight.nested_absmax, .nested_quant_map  F32 [blocks of 256 absmax], [256]; double quantisation only
//   x.weight.quant_state.bitsandbytes__nf4     U8, JSON: quant_type, blocksize, dtype, shape; with double quantisation
//                                              nested_blocksize, nested_dtype and nested_offset too
#pragma once

#include <memory>

#include "cases/spec/weight_source.hpp"

namespace assay {

// The tensors of the files with each quantised one under the name "x.weight" alone: of its shape before it was
// quantised, dequantised to float32 by read(), in parts by nf4(). A source without any is handed back as it is.
// InputError naming tensor and part, found when it is opened: a part that is missing, left over, of another dtype or
// length than the shape asks for; levels that are not NF4's; JSON that is malformed, has other fields, or says another
// block size or type. UnsupportedError for fp4.
std::shared_ptr<const WeightSource> quantized_source(std::shared_ptr<const WeightSource> source);

}  // namespace assay
