#include "runners/ops/problems.hpp"

namespace assay {

namespace {

struct Problem {
  const char* op;
  void (*draw)(Draw&);
};

constexpr Problem kProblems[] = {
#define ASSAY_OP(stem) {#stem, problems::stem},
#include "runners/ops/ops.def"
#undef ASSAY_OP
};

}  // namespace

OpCall draw_call(const OpCase& op_case, const OpPoint& point) {
  for (const Problem& problem : kProblems) {
    if (problem.op != op_case.op) continue;
    const OpSpec& spec = op_spec(op_case.op);
    Draw draw(spec, point, op_case.ranges, op_case.seed, entries_at_ends(spec, point, op_case.sample));
    problem.draw(draw);
    return std::move(draw).take();
  }
  throw InputError("op " + op_case.op, "has no problem", "add it to runners/ops/ops.def");
}

}  // namespace assay
