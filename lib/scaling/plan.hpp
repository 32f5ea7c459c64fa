// What a training takes on ranks that nobody has yet, from a study on fewer: time, memory, node-hours, and what to ask
// Slurm for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "scaling/step_model.hpp"
#include "scaling/study.hpp"

namespace lockstep {

struct PlanRequest {
  RankGrid grid;
  std::int64_t batch_per_rank = 1;
  std::int64_t samples = 0;       // of an epoch
  std::int64_t test_samples = 0;  // after each
  std::int64_t epochs = 1;

  std::int64_t global_batch() const { return grid.ranks * batch_per_rank; }
};

struct TrainingPlan {
  PlanRequest request;
  StepPrediction step;
  double efficiency = 1;    // of a rank's throughput, beside that of one rank with the same batch
  Interval epoch;           // seconds, its test included
  Interval training;        // likewise, of all epochs
  double node_hours = 0;    // of the middle
  double memory_bytes = 0;  // tensors of a rank
  double checkpoint_bytes = 0;
  BucketAdvice buckets;
  std::int64_t time_limit_minutes = 0;  // for sbatch --time: the upper end, a tenth and five minutes more
  std::int64_t notice_seconds = 0;      // for sbatch --signal: two steps, and a checkpoint at 100 MB/s
};

// A model of the whole study. Throws Error(usage) where the study cannot tell: one rank alone, or a device that does
// not tell what its steps go to.
StepModel model_of(const Study& study);

// Throws Error(usage) where the study was of one node and the request is of several, or an epoch has no whole step.
TrainingPlan plan_training(const Study& study, const StepModel& model, const PlanRequest& request);

// A line for each, under a heading.
std::string plans_table(std::span<const TrainingPlan> plans);

// Why all that is predicted from a study may be far from the truth, in sentences: it was too noisy.
std::vector<std::string> doubts_of(const Study& study);
// The same of a plan: also where the study measured no such ranks, nodes or batches, or where ranks share cores.
std::vector<std::string> doubts_of(const Study& study, const TrainingPlan& plan);

// What to ask for: options of a training and of sbatch, a line each.
std::string plan_advice(const TrainingPlan& plan);

// "1-02:30:00", as sbatch takes it.
std::string slurm_time(std::int64_t minutes);

// A training that ran, and what a study predicts of it.
struct RunSpeed {
  std::string name;  // the folder as it was given
  StepSetting setting;
  double samples_per_second = 0;
};
// "runs/r20: 775.0 samples/s predicted (760.1 to 790.2) on 2 ranks, 781.3 measured. The prediction is off by -0.8 %."
std::string prediction_of(const StepModel& model, const RunSpeed& run);

// By a run's summary.json. Throws as read_run(); Error(usage) where it tells no speed yet, or is of another model or
// precision than the study.
RunSpeed speed_of_run(const Study& study, const std::string& folder);

}  // namespace lockstep
