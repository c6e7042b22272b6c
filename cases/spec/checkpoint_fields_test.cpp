#include <gtest/gtest.h>

#include <filesystem>

#include "cases/spec/checkpoint.hpp"
#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/scratch_folder.hpp"

namespace assay {
namespace {

namespace fs = std::filesystem;

class CheckpointFields : public ::testing::Test {
 protected:
  // What is said of a config beside a config.json; empty if they agree.
  std::string refusal(const std::string& ours, const std::string& theirs) const {
    ModelConfig config;
    config.file = "our.config.json";
    config.fields = nlohmann::json::parse(ours);
    write_file(folder_ / "config.json", theirs);
    try {
      check_fields(config, folder_);
      return "";
    } catch (const InputError& error) {
      return error.what();
    }
  }

  const ScratchFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

TEST_F(CheckpointFields, AFieldThatDiffersIsNamedWithBothValues) {
  const std::string text = refusal(R"({"hidden_size": 24, "num_heads": 6})", R"({"hidden_size": 24, "num_heads": 8})");
  for (const char* part : {"config.json /num_heads", "is 8", "6 in our.config.json"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_NE(refusal(R"({"use_bias": true})", R"({"use_bias": false})").find("/use_bias"), std::string::npos);
  EXPECT_NE(refusal(R"({"model_type": "mamba"})", R"({"model_type": "mamba2"})").find("/model_type"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"layers": [1, 2]})", R"({"layers": [1, 2, 3]})").find("/layers"), std::string::npos);
  EXPECT_NE(refusal(R"({"rope_parameters": {"rope_theta": 5}})", R"({"rope_parameters": {"rope_theta": 6}})")
                .find("/rope_parameters/rope_theta"),
            std::string::npos);
}

TEST_F(CheckpointFields, OnlyWhatBothHaveIsCompared) {
  EXPECT_EQ(refusal(R"({"hidden_size": 24})", R"({"num_heads": 8})"), "");
  EXPECT_EQ(refusal(R"({"head_dim": null})", R"({"head_dim": 8})"), "");
  EXPECT_EQ(refusal(R"({"head_dim": 8})", R"({"head_dim": null})"), "");
  EXPECT_EQ(refusal(R"({"time_step_rank": "auto"})", R"({"time_step_rank": 2})"), "");
  EXPECT_EQ(refusal(R"({"time_step_rank": 2})", R"({"time_step_rank": "auto"})"), "");
}

TEST_F(CheckpointFields, WhatChangesNoNumbersMayDiffer) {
  EXPECT_EQ(refusal(R"({"dtype": "float32", "architectures": ["A"], "use_cache": true, "eos_token_id": 1})",
                    R"({"dtype": "bfloat16", "architectures": ["B"], "use_cache": false, "eos_token_id": [2],
                        "transformers_version": "4.1"})"),
            "");
  EXPECT_EQ(refusal(R"({"rms_norm_eps": 1e-5, "rope_theta": 10000})", R"({"rms_norm_eps": 0.00001,
      "rope_theta": 10000.0})"),
            "");
}

TEST_F(CheckpointFields, InfinityIsReadAsItIsFound) {
  const std::string ours = R"({"time_step_limit": [0.0, {"__float__": "Infinity"}]})";
  EXPECT_EQ(refusal(ours, R"({"time_step_limit": [0.0, Infinity]})"), "");
  EXPECT_EQ(refusal(ours, R"({"time_step_limit": [0.0, {"__float__": "Infinity"}], "note": "Infinity \" Infinity"})"),
            "");
  EXPECT_NE(refusal(ours, R"({"time_step_limit": [0.0, 0.1]})").find("/time_step_limit"), std::string::npos);
}

TEST_F(CheckpointFields, LayerTypesMayBeSpelledEitherWay) {
  EXPECT_EQ(refusal(R"({"layer_types": ["mamba", "full_attention"]})",
                    R"({"layer_types": ["linear_attention", "attention"]})"),
            "");
  EXPECT_NE(refusal(R"({"layer_types": ["mamba", "mamba"]})", R"({"layer_types": ["mamba", "attention"]})"), "");
}

TEST_F(CheckpointFields, TextModelsMayBeNested) {
  const std::string plain = R"({"model_type": "a_text", "hidden_size": 24})",
                    nested = R"({"model_type": "a", "text_config": {"model_type": "a_text", "hidden_size": 24}})",
                    other = R"({"model_type": "a", "text_config": {"model_type": "a_text", "hidden_size": 25}})";
  EXPECT_EQ(refusal(plain, nested), "");
  EXPECT_EQ(refusal(nested, plain), "");
  EXPECT_EQ(refusal(nested, nested), "");
  EXPECT_NE(refusal(plain, other).find("/text_config/hidden_size"), std::string::npos);
  EXPECT_NE(refusal(nested, other).find("/text_config/hidden_size"), std::string::npos);
  EXPECT_NE(refusal(other, plain).find("/hidden_size"), std::string::npos);
}

TEST_F(CheckpointFields, AFileThatIsNoConfigIsNamed) {
  for (const char* text : {"", "[]", "{", R"({"a": 1, "a": 2})", "Infinit"})
    EXPECT_NE(refusal(R"({"a": 1})", text).find("config.json"), std::string::npos) << text;
  fs::remove(folder_ / "config.json");
  EXPECT_NO_THROW(check_fields(ModelConfig(), folder_));
}

}  // namespace
}  // namespace assay
