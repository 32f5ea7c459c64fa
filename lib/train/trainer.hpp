// Trains one model: epochs of steps over a data set, a test after each, reports on the way, the model file at the end.
#pragma once

#include <nlohmann/json.hpp>

#include "dataset/dataset.hpp"
#include "runtime/session.hpp"
#include "train/evaluation.hpp"
#include "train/recipe.hpp"
#include "train/reporter.hpp"
#include "train/training_step.hpp"

namespace lockstep {

class Trainer {
 public:
  // Collective. Opens the data, builds the model, chooses kernels and prints what will be done. `session` outlives
  // this. Throws Error(usage) on a recipe that the data or the number of ranks do not allow.
  Trainer(const Session& session, Recipe recipe);

  // Collective. The whole training.
  void fit();

 private:
  void describe() const;
  void train_epoch(Loader& loader, std::int64_t epoch);
  void report(const Loader& loader, int steps_left_under_way);
  Evaluation test(std::int64_t epoch);
  void save(const Evaluation& last);
  nlohmann::json summary(const Evaluation& last, const std::string& weights_hash) const;

  const Session& session_;
  Recipe recipe_;
  Stopwatch watch_;
  LoaderShare share_;
  Dataset train_;
  Dataset test_;
  TrainingLength length_;
  LrSchedule schedule_;
  Reporter reporter_;
  TrainingStep step_;
  Evaluator evaluator_;
};

}  // namespace lockstep
