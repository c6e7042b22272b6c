#include "runners/commands/case_templates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "cases/spec/error.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/select.hpp"

namespace assay {

namespace {

struct Template {
  const char* aspect;
  const char* dtype;
  // The members after `why`. @A and @B are inputs, @G one with greedy tokens; @N is a length that A and B both have, @P
  // the columns of padding of a row of 1 token beside one of @N; @Q is a position in A and @T a token that it does not
  // hold; @OP is the op of the mixer; @S an input with beams, @W their width for @X steps; @K a quantisation and @U the
  // modules that the cases of the same run leave as they are.
  const char* body;
};

constexpr const char* kQuantization = "nf4";
constexpr const char* kWhole = R"("legs": [{"name": "whole", "rows": [{"input": "@A"}]}])";

// One for each of kAspects.
constexpr Template kTemplates[] = {
    {"logits", "float32", kWhole},
    {"generate", "float32",
     R"("legs": [
    {"name": "recomputed", "rows": [{"input": "@G"}], "free_running": true},
    {"name": "cached", "rows": [{"input": "@G"}], "cache": "dynamic", "free_running": true}
  ],
  "agree": [["recomputed", "cached"]])"},
    {"padding", "float32",
     R"("legs": [
    {
      "name": "ragged",
      "rows": [{"input": "@A", "length": 1, "pad": @P}, {"input": "@B", "length": @N}],
      "cache": "dynamic",
      "calls": [@N]
    }
  ])"},
    {"batch", "float32",
     R"("legs": [
    {"name": "together", "rows": [{"input": "@A", "length": @N}, {"input": "@B", "length": @N}]},
    {"name": "alone", "rows": [{"input": "@A", "length": @N}]}
  ],
  "agree": [["together", "alone"]])"},
    {"cache", "float32",
     R"("legs": [
    {"name": "whole", "rows": [{"input": "@A"}]},
    {"name": "each", "rows": [{"input": "@A"}], "cache": "dynamic", "calls": ["each"]}
  ],
  "agree": [["whole", "each"]])"},
    {"causal", "float32",
     R"("legs": [{"name": "changed", "rows": [{"input": "@A", "change": {"position": @Q, "token": @T}}]}])"},
    {"mixer", "float32",
     R"("legs": [
    {"name": "whole", "rows": [{"input": "@A"}], "forms": {"@OP": "*"}},
    {"name": "each", "rows": [{"input": "@A"}], "cache": "dynamic", "calls": ["each"], "forms": {"@OP": "*"}}
  ])"},
    {"beams", "float32",
     R"("legs": [
    {"name": "recomputed", "rows": [{"input": "@S"}], "beams": {"width": @W, "steps": @X}},
    {"name": "cached", "rows": [{"input": "@S"}], "cache": "dynamic", "beams": {"width": @W, "steps": @X}}
  ])"},
    {"long", "float32",
     R"("legs": [
    {"name": "whole", "rows": [{"input": "@G"}]},
    {"name": "each", "rows": [{"input": "@G"}], "cache": "dynamic", "calls": ["each"]}
  ],
  "agree": [["whole", "each"]])"},
    {"fp16", "float16", kWhole},
    {"bf16", "bfloat16", kWhole},
    {"int4", "float32",
     R"("quantization": "@K",@U
  "legs": [
    {"name": "whole", "rows": [{"input": "@A"}]},
    {"name": "each", "rows": [{"input": "@A"}], "cache": "dynamic", "calls": ["each"]}
  ],
  "agree": [["whole", "each"]])"},
    {"static_cache", "float32",
     R"("legs": [
    {"name": "dynamic", "rows": [{"input": "@A"}], "cache": "dynamic", "calls": ["each"]},
    {"name": "static", "rows": [{"input": "@A"}], "cache": "static", "calls": ["each"]}
  ],
  "agree_exactly": [["dynamic", "static"]])"},
    {"offload", "float32",
     R"("legs": [
    {"name": "resident", "rows": [{"input": "@A"}], "cache": "dynamic", "calls": ["each"]},
    {"name": "offloaded", "rows": [{"input": "@A"}], "cache": "dynamic", "calls": ["each"], "from": "safetensors", "residency": "offloaded"}
  ],
  "agree_exactly": [["resident", "offloaded"]])"},
};

static_assert(std::size(kTemplates) == std::size(kAspects));

// The op that tells the family: any other only where none of these is there.
std::string mixer_op(const ModelConfig& config) {
  const std::vector<std::string> ops = model_spec(config.model).ops(config);
  for (const char* op : {"selective_scan", "ssd", "gated_delta_rule", "causal_conv1d"})
    if (std::find(ops.begin(), ops.end(), op) != ops.end()) return op;
  if (ops.empty()) throw InputError(config.id(), "the model has no op whose forms a mixer case could ask about");
  return ops.front();
}

const Input& input_where(const ModelConfig& config, const std::string& what, auto&& is_wanted) {
  for (const auto& [name, input] : config.inputs)
    if (is_wanted(input)) return input;
  throw InputError(config.id(), "has no input " + what, "add one to its file (cases/README.md), then record it");
}

void replace(std::string& text, const std::string& mark, const std::string& value) {
  for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += value.size())
    text.replace(at, mark.size(), value);
}

// `"unquantized": [...],` as in a case that cites the run already; a run is recorded once.
std::string unquantized_text(const Corpus& corpus, const ModelConfig& config, const std::string& input) {
  for (const Case& test_case : corpus.cases) {
    if (test_case.model != config.model || test_case.config != config.name || test_case.quantization != kQuantization)
      continue;
    const bool cites = std::any_of(test_case.legs.begin(), test_case.legs.end(), [&](const Leg& leg) {
      return std::any_of(leg.rows.begin(), leg.rows.end(), [&](const Row& row) { return row.input == input; });
    });
    if (cites && !test_case.unquantized.empty())
      return fmt::format("\n  \"unquantized\": {},", nlohmann::json(test_case.unquantized).dump());
  }
  return "";
}

std::string filled(std::string body, const ModelConfig& config, const Corpus& corpus) {
  const auto needs = [&body](const char* mark) { return body.find(mark) != std::string::npos; };
  replace(body, "@OP", needs("@OP") ? mixer_op(config) : "");
  if (needs("@G"))
    replace(body, "@G",
            input_where(config, "with greedy tokens", [](const Input& input) { return input.greedy > 0; }).name);
  if (needs("@S")) {
    const Input& searched =
        input_where(config, "with \"beams\"", [](const Input& input) { return input.beams.has_value(); });
    replace(body, "@S", searched.name);
    replace(body, "@W", std::to_string(searched.beams->width));
    replace(body, "@X", std::to_string(searched.beams->steps));
  }
  if (!needs("@A")) return body;
  // Of a whole record, so that the probes are compared.
  const auto is_prompt = [](const Input& input) {
    return input.greedy == 0 && !input.beams && !input.is_logits_only && input.tokens.size() > 1;
  };
  const Input& a = input_where(config, "of several tokens, none of them greedy", is_prompt);
  if (needs("@B")) {
    const Input& b = input_where(config, "beside '" + a.name + "' of several tokens",
                                 [&](const Input& input) { return input.name != a.name && is_prompt(input); });
    const size_t length = std::min({a.tokens.size(), b.tokens.size(), size_t{9}});
    replace(body, "@B", b.name);
    replace(body, "@N", std::to_string(length));
    replace(body, "@P", std::to_string(length - 1));
  }
  const size_t position = a.tokens.size() / 2;
  if (needs("@U")) replace(body, "@U", unquantized_text(corpus, config, a.name));
  replace(body, "@K", kQuantization);
  replace(body, "@A", a.name);
  replace(body, "@Q", std::to_string(position));
  replace(body, "@T", std::to_string(a.tokens[position] == 0 ? 1 : 0));
  return body;
}

}  // namespace

std::string case_template(const std::string& aspect, const ModelConfig& config, const Corpus& corpus) {
  const auto found = std::find_if(std::begin(kTemplates), std::end(kTemplates),
                                  [&](const Template& entry) { return aspect == entry.aspect; });
  return fmt::format(
      "{{\n  \"schema\": \"assay.case/1\",\n  \"config\": \"{}\",\n  \"tier\": \"ci\",\n  \"dtype\": \"{}\",\n"
      "  \"why\": \"\",\n  {}\n}}\n",
      config.name, found->dtype, filled(found->body, config, corpus));
}

}  // namespace assay
