// assay fit: searches a seed whose synthetic weights show faults: wide greedy gaps, many different tokens, and every
// tensor moving the logits when it is disturbed. Writes the seed and the figures into the config file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/weights.hpp"
#include "runners/commands/commands.hpp"
#include "runners/commands/config_argument.hpp"
#include "runners/subjects.hpp"

namespace assay {

namespace {

struct Options {
  std::string config;
  uint64_t from = 1;
  int tries = 200;
  double min_gap = 0.03;
  bool dry_run = false;
};

// A source with one tensor disturbed: every element moved by 5 % and, for those near zero, by 1e-3.
class Disturbed : public WeightSource {
 public:
  Disturbed(std::shared_ptr<const WeightSource> inner, std::string target)
      : inner_(std::move(inner)), target_(std::move(target)) {}
  std::vector<std::string> names() const override { return inner_->names(); }
  bool has(const std::string& name) const override { return inner_->has(name); }
  HostTensor read(const std::string& name) const override {
    HostTensor tensor = inner_->read(name);
    if (name == target_) {
      float sign = 1;
      for (float& value : tensor.values<float>()) {
        value += sign * (0.05f * std::abs(value) + 1e-3f);
        sign = -sign;
      }
    }
    return tensor;
  }

 private:
  std::shared_ptr<const WeightSource> inner_;
  std::string target_;
};

HostTensor whole_logits(Model& model, const std::vector<int64_t>& tokens) {
  SessionOptions session_options;
  session_options.cache = CacheKind::kNone;
  Call call;
  call.tokens = HostTensor({1, static_cast<int64_t>(tokens.size())}, tokens);
  call.capture = false;
  const Trace trace = model.start(session_options)->forward(call);
  const HostTensor* logits = trace.find("logits");
  if (logits == nullptr) throw HarnessError("fit", "the subject returned no logits");
  return *logits;
}

struct Figures {
  double smallest_gap = INFINITY;
  int64_t fewest_different = 1000;
  double scale = 0;  // largest logit
  double weakest_move = INFINITY;
  std::string weakest_tensor;
};

// A long run has more steps than a seed can give wide gaps to: what it needs is a gap that no rounding closes.
constexpr int64_t kLongRun = 64;
constexpr double kLongRunShare = 0.2;

// Greedy continuation of one input, in cached steps. Ends at the first gap that is too small: such a seed is lost.
void measure_greedy(Model& model, const Input& input, double min_gap, Figures& figures) {
  const auto session = model.start({});
  std::vector<int64_t> tokens = input.tokens;
  std::set<int64_t> different;
  for (int64_t step = 0; step < input.greedy; ++step) {
    Call call;
    call.tokens = HostTensor({1, static_cast<int64_t>(tokens.size())}, tokens);
    call.capture = false;
    const Trace trace = session->forward(call);
    const HostTensor* logits = trace.find("logits");
    if (logits == nullptr) throw HarnessError("fit", "the subject returned no logits");
    const auto values = logits->values<float>().last(static_cast<size_t>(logits->shape().back()));
    const auto best = std::max_element(values.begin(), values.end());
    float second = -INFINITY;
    for (auto it = values.begin(); it != values.end(); ++it)
      if (it != best) second = std::max(second, *it);
    figures.smallest_gap = std::min(figures.smallest_gap, static_cast<double>(*best - second));
    if (*best - second < min_gap) return;
    figures.scale = std::max(figures.scale, static_cast<double>(std::abs(*best)));
    tokens = {best - values.begin()};
    different.insert(tokens[0]);
  }
  figures.fewest_different = std::min(figures.fewest_different, static_cast<int64_t>(different.size()));
}

// Short runs first: most seeds end there.
bool has_clear_winners(Model& model, const ModelConfig& config, double min_gap, Figures& figures) {
  for (const bool is_long : {false, true}) {
    Figures of_runs = figures;
    of_runs.smallest_gap = INFINITY;
    const double least = is_long ? min_gap * kLongRunShare : min_gap;
    for (const auto& [name, input] : config.inputs)
      if (input.greedy > 0 && (input.greedy > kLongRun) == is_long && of_runs.smallest_gap >= least)
        measure_greedy(model, input, least, of_runs);
    const bool is_clear = of_runs.smallest_gap >= least && of_runs.fewest_different >= 10;
    if (is_long) of_runs.smallest_gap = figures.smallest_gap;
    figures = of_runs;
    if (!is_clear) return false;
  }
  return true;
}

void measure_moves(Subject& subject, const ModelConfig& config, std::shared_ptr<const WeightSource> source,
                   Figures& figures) {
  const auto longest = std::max_element(config.inputs.begin(), config.inputs.end(), [](const auto& a, const auto& b) {
    return a.second.tokens.size() < b.second.tokens.size();
  });
  const auto logits_of = [&](std::shared_ptr<const WeightSource> weights) {
    return whole_logits(*subject.load(config, std::move(weights), {}), longest->second.tokens);
  };
  const HostTensor undisturbed = logits_of(source);
  for (const std::string& name : source->names()) {
    const HostTensor moved = logits_of(std::make_shared<Disturbed>(source, name));
    double largest = 0;
    for (int64_t i = 0; i < moved.count(); ++i) largest = std::max(largest, std::abs(moved.at(i) - undisturbed.at(i)));
    if (largest < figures.weakest_move) {
      figures.weakest_move = largest;
      figures.weakest_tensor = name;
    }
  }
}

// Replaces the "weights" object in the file's text, so that the rest keeps its form.
void write_seed(const std::filesystem::path& file, uint64_t seed, const Figures& figures) {
  std::string text = read_file(file);
  const size_t key = text.find("\"weights\"");
  const size_t open = text.find('{', key);
  if (key == std::string::npos || open == std::string::npos) throw InputError(file.string(), "has no weights object");
  size_t close = open;
  for (int depth = 0; close < text.size(); ++close) {
    if (text[close] == '{') ++depth;
    if (text[close] == '}' && --depth == 0) break;
  }
  const std::string weights = fmt::format(
      "{{\"kind\": \"synthetic\", \"seed\": {}, \"fit\": {{\"smallest_gap\": {:.4f}, \"different_tokens\": {}, "
      "\"largest_logit\": {:.3f}, \"weakest_move\": {:.2e}, \"weakest_tensor\": \"{}\"}}}}",
      seed, figures.smallest_gap, figures.fewest_different, figures.scale, figures.weakest_move,
      figures.weakest_tensor);
  text.replace(open, close - open + 1, weights);
  write_file(file, text);
}

int fit(const Options& options, const Invocation& invocation) {
  constexpr double kWidestGap = 10;  // logits of synthetic weights are a few units wide
  if (!(options.min_gap > 0 && options.min_gap <= kWidestGap))
    throw InputError("--min-gap",
                     fmt::format("{} is not a gap between logits above 0 and at most {}", options.min_gap, kWidestGap),
                     "e.g. --min-gap 0.03");
  ModelConfig config = config_argument(options.config, invocation);
  if (config.weights.kind != WeightsRecipe::Kind::kSynthetic)
    throw InputError(config.file.string() + "/weights", "is a checkpoint", "only synthetic weights have a seed to fit");
  OpenedSubject opened = open_subject(find_subject("reference", invocation.executable));
  if (opened.unavailable) throw HarnessError("fit", opened.unavailable->text);
  // A disturbance of 5 % that moves no logit by this share of the largest one is lost in a wider bound.
  constexpr double kWeakest = 1e-4;
  for (int attempt = 0; attempt < options.tries; ++attempt) {
    config.weights.seed = options.from + static_cast<uint64_t>(attempt);
    const auto source = open_weights(config);
    Figures figures;
    const bool is_clear =
        has_clear_winners(*opened.subject->load(config, source, {}), config, options.min_gap, figures);
    if (is_clear) measure_moves(*opened.subject, config, source, figures);
    const bool is_good = is_clear && figures.weakest_move > kWeakest * figures.scale;
    fmt::print(
        stderr, "seed {:4}: gap {:.4f}, {} different tokens, logits to {:.2f}{}\n", config.weights.seed,
        figures.smallest_gap, figures.fewest_different, figures.scale,
        is_clear ? fmt::format(", weakest {} moves them by {:.2e}", figures.weakest_tensor, figures.weakest_move) : "");
    if (!is_good) continue;
    if (!options.dry_run) write_seed(config.file, config.weights.seed, figures);
    fmt::print("{}: seed {}{}\n", config.id(), config.weights.seed,
               options.dry_run ? " would do" : "; its goldens are stale now: assay golden record " + config.model);
    return kExitAllowed;
  }
  throw InputError(config.file.string(),
                   fmt::format("no seed from {} to {} is clear enough", options.from,
                               options.from + static_cast<uint64_t>(options.tries) - 1),
                   "try more (--tries), or change the config's shape");
}

}  // namespace

void add_fit(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      new_command(app, "fit", "Find a seed whose weights make faults visible",
                  "  assay fit mamba2/tiny              writes the seed and its figures into the config\n"
                  "  assay fit mamba2/tiny --from 100   another region of seeds\n");
  command->add_option("config", options->config, "MODEL/NAME or a config file")->required()->type_name("CONFIG");
  command->add_option("--from", options->from, "First seed")->capture_default_str();
  command->add_option("--tries", options->tries, "How many seeds")->capture_default_str()->check(CLI::PositiveNumber);
  command
      ->add_option(
          "--min-gap", options->min_gap,
          "Least gap between the two best logits of a greedy step (a run of more than 64 steps: a fifth of it)")
      ->capture_default_str();
  command->add_flag("--dry-run", options->dry_run, "Write nothing");
  command->callback(
      [options, &invocation] { invocation.action = [options, &invocation] { return fit(*options, invocation); }; });
}

}  // namespace assay
