#include "runners/beam_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "cases/spec/error.hpp"

namespace assay {

namespace {

const HostTensor& logits_of(const Trace& trace, int64_t rows, int64_t columns) {
  const HostTensor* logits = trace.find("logits");
  if (!logits) throw InputError("beams", "the subject returned no logits to choose from");
  const Shape& shape = logits->shape();
  if (logits->dtype() != DType::kF32 || shape.size() != 3 || shape[0] != rows || shape[1] != columns)
    throw InputError("logits", fmt::format("{} {} where [{}, {}, V] float32 was expected", to_string(shape),
                                           dtype_name(logits->dtype()), rows, columns));
  return *logits;
}

class BeamSession {
 public:
  BeamSession(Model& model, const LegPlan& plan, std::vector<RowPlan> rows, int64_t steps, const LegOptions& options)
      : plan_(plan), options_(options) {
    trace.plan = &plan;
    trace.rows = std::move(rows);
    SessionOptions session;
    session.rows = static_cast<int64_t>(trace.rows.size());
    session.cache = plan.leg->cache;
    session.limit = plan.leg->cache == CacheKind::kStatic ? plan.columns + steps : 0;
    session.forms = plan.forms;
    session_ = model.start(session);
  }

  bool has_cache() const { return plan_.leg->cache != CacheKind::kNone; }
  const Session& session() const { return *session_; }

  // The next `columns`; all of them again without a cache.
  CallRecord forward(int64_t columns) {
    CallRecord record;
    record.step = step_++;
    record.first = has_cache() ? done_ : 0;
    record.columns = done_ + columns - record.first;
    record.call.tokens = token_block(trace.rows, plan_.leg->pad_token, record.first, record.columns);
    record.call.mask = mask_block(trace.rows, done_ + columns);
    record.call.capture = options_.capture;
    record.trace = session_->forward(record.call);
    done_ += columns;
    for (const std::string& kernel : session_->kernels()) kernels_.insert(kernel);
    return record;
  }

  // Row b becomes the old row source[b] with one token more.
  void extend(const std::vector<int64_t>& source, const std::vector<int64_t>& tokens) {
    std::vector<RowPlan> rows;
    for (size_t b = 0; b < source.size(); ++b) {
      rows.push_back(trace.rows.at(static_cast<size_t>(source[b])));
      rows.back().tokens.push_back(tokens[b]);
    }
    trace.rows = std::move(rows);
    if (has_cache()) session_->reorder(source);
  }

  void finish() {
    if (has_cache()) trace.states = session_->states();
    trace.kernels.assign(kernels_.begin(), kernels_.end());
  }

  LegTrace trace;

 private:
  const LegPlan& plan_;
  const LegOptions& options_;
  std::unique_ptr<Session> session_;
  std::set<std::string> kernels_;
  int64_t done_ = 0, step_ = 0;
};

// One step of every row's search; sums [rows][beams].
void step_all(BeamSession& session, const Trace& trace, int64_t width, std::vector<std::vector<double>>& sums,
              BeamRun& run) {
  const auto batch = static_cast<int64_t>(session.trace.rows.size());
  const HostTensor* found = trace.find("logits");
  const int64_t columns = found && found->shape().size() == 3 ? found->shape()[1] : 1;
  const HostTensor& logits = logits_of(trace, batch, columns);
  std::vector<int64_t> source, tokens;
  for (size_t r = 0; r < sums.size(); ++r) {
    const int64_t begin = static_cast<int64_t>(r) * width;
    std::vector<std::vector<double>> log_probs;
    for (size_t i = 0; i < sums[r].size(); ++i)
      log_probs.push_back(log_softmax(logits, begin + static_cast<int64_t>(i), columns - 1));
    BeamChoice choice = choose_beams(sums[r], log_probs, width);
    sums[r] = choice.sums;
    for (const int64_t from : choice.step.sources) source.push_back(begin + from);
    tokens.insert(tokens.end(), choice.step.tokens.begin(), choice.step.tokens.end());
    run.steps[r].push_back(std::move(choice.step));
  }
  session.extend(source, tokens);
}

}  // namespace

std::vector<double> log_softmax(const HostTensor& logits, int64_t row, int64_t column) {
  const Shape& shape = logits.shape();
  const auto values =
      logits.values<float>().subspan(static_cast<size_t>((row * shape[1] + column) * shape[2]), shape[2]);
  const double largest = *std::max_element(values.begin(), values.end());
  double sum = 0;
  for (const float value : values) sum += std::exp(value - largest);
  std::vector<double> result;
  for (const float value : values) result.push_back(value - largest - std::log(sum));
  return result;
}

double sum_of_last(const HostTensor& logits, const RowPlan& row, int64_t batch_row, int64_t count) {
  double sum = 0;
  for (auto at = static_cast<int64_t>(row.tokens.size()) - count; at < static_cast<int64_t>(row.tokens.size()); ++at)
    sum += log_softmax(logits, batch_row, row.pad + at - 1)[static_cast<size_t>(row.tokens[static_cast<size_t>(at)])];
  return sum;
}

BeamChoice choose_beams(const std::vector<double>& sums, const std::vector<std::vector<double>>& log_probs,
                        int64_t width) {
  const size_t vocabulary = log_probs.at(0).size();
  const auto kept = static_cast<size_t>(width);
  std::vector<double> candidates;
  for (size_t beam = 0; beam < sums.size(); ++beam)
    for (const double log_prob : log_probs.at(beam)) candidates.push_back(sums[beam] + log_prob);
  if (candidates.size() <= kept)
    throw InputError("beams", fmt::format("{} candidates for {} beams", candidates.size(), width));
  std::vector<size_t> order(candidates.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  // NaN never wins, and then the sums that are compared are NaN.
  const auto better = [&candidates](size_t a, size_t b) {
    const double x = std::isnan(candidates[a]) ? -INFINITY : candidates[a];
    const double y = std::isnan(candidates[b]) ? -INFINITY : candidates[b];
    return x != y ? x > y : a < b;
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(kept) + 1, order.end(), better);
  BeamChoice choice;
  for (size_t i = 0; i <= kept; ++i) {
    choice.step.log_probs.push_back(static_cast<float>(candidates[order[i]]));
    if (i == kept) break;
    choice.sums.push_back(candidates[order[i]]);
    choice.step.sources.push_back(static_cast<int64_t>(order[i] / vocabulary));
    choice.step.tokens.push_back(static_cast<int64_t>(order[i] % vocabulary));
  }
  return choice;
}

BeamRun run_beam_leg(Model& model, const LegPlan& plan, const LegOptions& options, const AfterCall& after_call) {
  const int64_t width = plan.leg->beams->width, steps = plan.leg->beams->steps;
  std::vector<RowPlan> rows;
  for (const RowPlan& row : plan.rows) rows.insert(rows.end(), static_cast<size_t>(width), row);
  BeamSession session(model, plan, std::move(rows), steps, options);
  BeamRun run;
  run.steps.resize(plan.rows.size());

  CallRecord record = session.forward(plan.columns);
  if (!after_call(record, session.trace.rows, session.session())) return {{}, std::move(session.trace)};
  // The beams of a row start alike: the first step chooses among the continuations of one.
  std::vector<std::vector<double>> sums(plan.rows.size(), {0.0});
  for (int64_t step = 0; step < steps; ++step) {
    step_all(session, record.trace, width, sums, run);
    if (session.has_cache() || step + 1 < steps) record = session.forward(1);
  }
  session.finish();
  run.trace = std::move(session.trace);
  return run;
}

ExhaustiveRun run_exhaustive_leg(Model& model, const LegPlan& plan, int64_t vocabulary, const LegOptions& options,
                                 const AfterCall& after_call) {
  std::vector<RowPlan> rows(static_cast<size_t>(vocabulary), plan.rows.at(0));
  for (size_t v = 1; v < rows.size(); ++v)
    for (int64_t& token : rows[v].tokens) token = (token + static_cast<int64_t>(v)) % vocabulary;
  BeamSession session(model, plan, std::move(rows), 1, options);
  ExhaustiveRun run;
  const CallRecord prefill = session.forward(plan.columns);
  const bool go_on = after_call(prefill, session.trace.rows, session.session());
  if (go_on) {
    run.first = log_softmax(logits_of(prefill.trace, vocabulary, plan.columns), 0, plan.columns - 1);
    std::vector<int64_t> tokens(static_cast<size_t>(vocabulary));
    for (size_t v = 0; v < tokens.size(); ++v) tokens[v] = static_cast<int64_t>(v);
    session.extend(std::vector<int64_t>(tokens.size(), 0), tokens);
    CallRecord step = session.forward(1);
    logits_of(step.trace, vocabulary, 1);
    session.trace.calls.push_back(std::move(step));
    session.finish();
  }
  run.trace = std::move(session.trace);
  return run;
}

LegPlan plan_whole(const LegTrace& found, const std::string& suffix, CacheKind cache, Leg& leg) {
  leg = *found.plan->leg;
  leg.name += " " + suffix;
  leg.cache = cache;
  leg.beams.reset();
  LegPlan plan = *found.plan;
  plan.leg = &leg;
  plan.name += " " + suffix;
  plan.rows = found.rows;
  plan.columns = plan.limit = found.rows.at(0).pad + static_cast<int64_t>(found.rows.at(0).tokens.size());
  plan.calls = {plan.columns};
  return plan;
}

}  // namespace assay
