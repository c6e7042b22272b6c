// LegModels: the model that a leg runs on, with its weights from where the leg says and resident or not.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cases/spec/case.hpp"
#include "cases/spec/model_config.hpp"
#include "cases/spec/scratch_folder.hpp"
#include "cases/spec/subject.hpp"
#include "runners/read_watch.hpp"

namespace assay {

// One model at a time, the last one asked for: cases come ordered by config. A checkpoint is written to a temporary
// folder once and stays until another one is wanted, or this ends.
class LegModels {
 public:
  explicit LegModels(Subject& subject) : subject_(subject) {}

  struct Loaded {
    Model& model;
    ReadWatch& reads;
    bool is_new;  // read now, not by an earlier leg
  };
  // options.residency is the leg's. Errors of the subject's load(); ScratchError when the checkpoint cannot be written.
  Loaded get(const ModelConfig& config, const Leg& leg, LoadOptions options);

  // What sets two models apart, where the weights come from and where they stay left out: the answer is the same.
  const std::string& identity() const { return identity_; }

  void drop();  // the model; the next get() loads it again

 private:
  std::shared_ptr<const WeightSource> weights(const ModelConfig& config, Leg::From from);

  Subject& subject_;
  std::string identity_, key_;  // of model_
  std::unique_ptr<ReadWatch> reads_;
  std::unique_ptr<Model> model_;
  std::string exported_;  // which config and form lies in folder_
  std::unique_ptr<ScratchFolder> folder_;
};

}  // namespace assay
