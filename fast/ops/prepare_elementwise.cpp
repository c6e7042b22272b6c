#include "fast/ops/prepare_elementwise.hpp"

#include "fast/kernels/elementwise.hpp"

namespace assay::fast {

void prepare_mask_rows(Preparation& prepare) {
  OpInputs& in = prepare.in;
  MaskRowsParams<float> p;
  p.x = in.required("x", "BLW");
  p.mask = in.optional_mask("mask", "BL");
  in.finish();
  if (p.mask == nullptr) in.refuse("mask", "is left out");
  p.batch = in.size('B');
  p.length = p.mask_stride = in.size('L');
  p.width = in.size('W');
  p.y = prepare.output("y", {p.batch, p.length, p.width});
  int64_t masked = 0;
  for (const uint8_t is_real : prepare.call.required("mask").values<uint8_t>()) masked += is_real == 0 ? 1 : 0;
  prepare.op.bytes -= 4.0 * static_cast<double>(masked * p.width);  // of which nothing is read
  prepare.launch(p, mask_rows<float>, mask_rows_id<float>);
}

void prepare_residual_add(Preparation& prepare) {
  OpInputs& in = prepare.in;
  ResidualAddParams<float> p;
  p.x = in.required("x", "TW");
  p.residual = in.required("residual", "TW");
  in.finish();
  p.count = in.size('T') * in.size('W');
  p.y = prepare.output("y", {in.size('T'), in.size('W')});
  prepare.launch(p, residual_add<float>, residual_add_id<float>);
}

void prepare_silu_gate(Preparation& prepare) {
  OpInputs& in = prepare.in;
  SiluGateParams<float> p;
  p.x = in.required("x", "TW");
  const float* z = in.required("z", "TW");
  in.finish();
  p.rows = in.size('T');
  p.width = in.size('W');
  // As in a fused projection, whose row holds z and as much besides.
  p.z_stride = 2 * p.width;
  const Tensor<float> wide = allocate<float>(prepare.arena, {p.rows, p.z_stride}, "projection");
  const size_t bytes = static_cast<size_t>(p.width) * sizeof(float);
  check(cudaMemcpy2DAsync(wide.data + p.width, 2 * bytes, z, bytes, bytes, static_cast<size_t>(p.rows),
                          cudaMemcpyDeviceToDevice, prepare.context.stream()),
        "copy of an input");
  p.z = wide.data + p.width;
  p.y = prepare.output("y", {p.rows, p.width});
  prepare.launch(p, silu_gate<float>, silu_gate_id<float>);
}

}  // namespace assay::fast
