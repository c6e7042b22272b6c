#include "fast/blocks/shared_expert.hpp"

#include "fast/kernels/shared_gate.hpp"

namespace assay::fast {

void experts_and_shared(Pass& pass, const SharedExpertShape& shape, const SharedExpertWeights& weights,
                        const std::string& probe, const Matrix& input, const Matrix& routed, const Matrix& output) {
  experts(pass, shape.experts, weights.experts, probe, input, routed);
  feed_forward(pass, shape.shared, weights.shared, probe + "shared.", input, output);
  add(pass, output, routed, output);
}

void experts_and_gated_shared(Pass& pass, const SharedExpertShape& shape, const SharedExpertWeights& weights,
                              const std::string& probe, const Matrix& input, const Matrix& output) {
  Scratch scratch(pass.scratch);
  const Matrix common = pass.buffer(output.columns, probe + "shared"), gate = pass.buffer(1, probe + "shared.gate");
  experts(pass, shape.experts, weights.experts, probe, input, output);
  feed_forward(pass, shape.shared, weights.shared, probe + "shared.", input, common);
  project(pass, input, weights.gate, {}, gate);
  pass.probes.add(probe + "shared.gate", gate);

  SharedGateParams<float> p;
  p.x = common.data;
  p.gate = gate.data;
  p.gate_stride = gate.stride;
  p.residual = output.data;
  p.y = output.data;
  p.rows = output.rows;
  p.width = output.columns;
  shared_gate(p, pass.context.stream());
  pass.context.record(shared_gate_id(p));
  pass.probes.add(probe + "out", output);
  scratch.close();
}

}  // namespace assay::fast
