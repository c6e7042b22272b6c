// The text part of a Qwen3.5 config (models.md M12, M13, transformers 5.24.0 models/qwen3_5 and qwen3_5_moe).
//
// Two forms, told apart by text_config:
//   nested  as released: the text fields in text_config, beside those of the images; weights under
//           model.language_model. The original's causal language model takes text_config alone
//   flat    a text-only file, model_type qwen3_5_text or qwen3_5_moe_text; weights under model.
// Both load into the original's class with nothing missing. Positions of text are three equal rows, so that
// mrope_section moves nothing.
#pragma once

#include <string>
#include <vector>

#include "cases/spec/models/fields.hpp"

namespace assay {

// The reader of the text fields.
FieldReader qwen3_5_text(const ModelConfig& config);
// Of every weight but the head.
std::string qwen3_5_prefix(const ModelConfig& config);

// The rules of both forms. family: "qwen3_5", "qwen3_5_moe"; own: text fields that the other family lacks. InputError
// naming the field for an unknown one, a wrong or missing model_type, tie_word_embeddings that differ, an attention
// said to have no output gate, an mrope_section that is not three parts of the rotated pairs.
void check_qwen3_5(const ModelConfig& config, const std::string& family, const std::vector<std::string>& own);

}  // namespace assay
