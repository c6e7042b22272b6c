#include "runners/leg_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cases/spec/error.hpp"
#include "runners/cache_watch.hpp"

namespace assay {

namespace {

SessionOptions session_options(const LegPlan& plan) {
  SessionOptions options;
  options.rows = static_cast<int64_t>(plan.rows.size());
  options.cache = plan.leg->cache;
  options.limit = plan.leg->cache == CacheKind::kStatic ? plan.limit : 0;
  options.forms = plan.forms;
  return options;
}

// A session, and how its cache behaves.
struct WatchedSession {
  WatchedSession(Model& model, const LegPlan& plan)
      : session(model.start(session_options(plan))), cache(*session, plan.leg->cache) {}

  std::unique_ptr<Session> session;
  CacheWatch cache;
};

// The request before: the same tokens in every row, no padding.
void run_before(Session& session, const LegPlan& plan, bool capture) {
  RowPlan row;
  row.tokens = plan.before;
  const std::vector<RowPlan> rows(plan.rows.size(), row);
  Call call;
  call.tokens = token_block(rows, plan.leg->pad_token, 0, static_cast<int64_t>(plan.before.size()));
  call.capture = capture;
  session.forward(call);
}

class LegRun {
 public:
  LegRun(Model& model, const LegPlan& plan, const LegOptions& options, const AfterCall& after_call)
      : plan_(plan), options_(options), after_call_(after_call) {
    result_.plan = &plan;
    result_.rows = plan.rows;
    if (plan.leg->before && !plan.leg->before->same_session) {
      other_ = std::make_unique<WatchedSession>(model, plan);
      run_before(*other_->session, plan, options.capture);
      made_call(*other_);
    }
    session_ = std::make_unique<WatchedSession>(model, plan);
    if (plan.leg->before && plan.leg->before->same_session) {
      run_before(*session_->session, plan, options.capture);
      made_call(*session_);
      session_->session->reset();
      session_->cache.look();
    }
  }

  LegTrace run() {
    bool go_on = true;
    for (const int64_t columns : plan_.calls)
      if (go_on) go_on = forward(done_, columns, done_);
    if (plan_.leg->free_running) generate(go_on);
    if (options_.keep_trace && plan_.leg->cache != CacheKind::kNone) result_.states = session_->session->states();
    result_.moved = session_->cache.reason();
    result_.kernels.assign(kernels_.begin(), kernels_.end());
    return std::move(result_);
  }

 private:
  void made_call(WatchedSession& made_by) {
    if (options_.after_forward) options_.after_forward();
    made_by.cache.look();
  }

  bool forward(int64_t first, int64_t columns, int64_t judge_from) {
    CallRecord record;
    record.step = step_++;
    record.first = first;
    record.columns = columns;
    record.judge_from = judge_from;
    record.call.tokens = token_block(result_.rows, plan_.leg->pad_token, first, columns);
    record.call.mask = mask_block(result_.rows, first + columns);
    record.call.capture = options_.capture;
    record.trace = session_->session->forward(record.call);
    done_ = first + columns;
    for (const std::string& kernel : session_->session->kernels()) kernels_.insert(kernel);
    const bool go_on = after_call_(record, result_.rows, *session_->session);
    made_call(*session_);
    if (plan_.leg->free_running) {
      const HostTensor* logits = record.trace.find("logits");
      chosen_ = logits ? greedy_tokens(*logits) : std::vector<int64_t>();
    }
    if (options_.keep_trace) result_.calls.push_back(std::move(record));
    return go_on;
  }

  // One token a row and step, until every row has as many as its golden. The last token is fed too: the golden holds
  // the logits after it.
  void generate(bool go_on) {
    const auto needs_more = [](const RowPlan& row) { return static_cast<int64_t>(row.tokens.size()) < row.judged; };
    std::vector<RowPlan>& rows = result_.rows;
    while (go_on && chosen_.size() == rows.size() && std::any_of(rows.begin(), rows.end(), needs_more)) {
      for (size_t b = 0; b < rows.size(); ++b) rows[b].tokens.push_back(chosen_[b]);
      const bool has_cache = plan_.leg->cache != CacheKind::kNone;
      go_on = has_cache ? forward(done_, 1, done_) : forward(0, done_ + 1, done_);
    }
  }

  const LegPlan& plan_;
  const LegOptions& options_;
  const AfterCall& after_call_;
  LegTrace result_;
  std::unique_ptr<WatchedSession> other_, session_;
  std::set<std::string> kernels_;
  std::vector<int64_t> chosen_;
  int64_t done_ = 0, step_ = 0;
};

}  // namespace

Span fresh_span(const CallRecord& call, const RowPlan& row, int64_t limit) {
  const int64_t from = std::max(call.first, call.judge_from);
  Span span = real_span(from, call.first + call.columns - from, row.pad);
  span.column += from - call.first;
  span.count = std::max<int64_t>(0, std::min(span.count, limit - span.position));
  return span;
}

LegTrace run_leg(Model& model, const LegPlan& plan, const LegOptions& options, const AfterCall& after_call) {
  return LegRun(model, plan, options, after_call).run();
}

std::vector<int64_t> greedy_tokens(const HostTensor& logits) {
  if (logits.shape().size() != 3 || logits.dtype() != DType::kF32 || logits.absent())
    throw InputError("logits", fmt::format("shape {} where [B, L, V] float32 was expected", to_string(logits.shape())));
  const int64_t rows = logits.shape()[0], columns = logits.shape()[1], vocabulary = logits.shape()[2];
  const std::span<const float> values = logits.values<float>();
  std::vector<int64_t> tokens;
  for (int64_t b = 0; b < rows; ++b) {
    const auto begin = values.begin() + ((b + 1) * columns - 1) * vocabulary;
    tokens.push_back(std::max_element(begin, begin + vocabulary) - begin);
  }
  return tokens;
}

}  // namespace assay
