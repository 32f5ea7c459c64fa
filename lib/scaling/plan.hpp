// Predicts a training on more ranks from a study on fewer: time, memory, node-hours, and the Slurm options to request.
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
  std::int64_t samples = 0;       // per epoch
  std::int64_t test_samples = 0;  // tested after each epoch
  std::int64_t epochs = 1;
  Exchange exchange = {};

  std::int64_t global_batch() const { return (grid.ranks - exchange.servers) * batch_per_rank; }
};

struct TrainingPlan {
  PlanRequest request;
  StepPrediction step;
  double efficiency = 1;    // throughput per rank, relative to one rank with the same batch
  Interval epoch;           // seconds, including its test
  Interval training;        // seconds of all epochs, including tests
  double node_hours = 0;    // for the middle of the interval
  double memory_bytes = 0;  // tensors of one rank
  double checkpoint_bytes = 0;
  BucketAdvice buckets;
  std::int64_t time_limit_minutes = 0;  // for sbatch --time: the upper end + 10 % + 5 minutes
  std::int64_t notice_seconds = 0;      // for sbatch --signal: two steps, and a checkpoint at 100 MB/s
};

// Fits a model to the whole study. Throws Error(usage) if the study is insufficient: it has only one rank, or its
// device does not report the parts of a step.
StepModel model_of(const Study& study);

// Throws Error(usage) if the study ran on one node and the request has several, if an epoch has no full step, if all
// ranks are servers, or if the study did not measure the compression, or servers.
TrainingPlan plan_training(const Study& study, const StepModel& model, const PlanRequest& request);

// One line per plan, below a heading.
std::string plans_table(std::span<const TrainingPlan> plans);

// Sentences that say why all predictions of a study may be wrong: it was too noisy.
std::vector<std::string> warnings_of(const Study& study);
// The same for one plan. Also checks that the study covers its ranks, nodes and batch, and that ranks do not share
// cores.
std::vector<std::string> warnings_of(const Study& study, const TrainingPlan& plan);

// The options to use for the training and for sbatch, one per line.
std::string plan_advice(const TrainingPlan& plan);

// "1-02:30:00", in sbatch's format.
std::string slurm_time(std::int64_t minutes);

// A completed training, to compare with a study's prediction.
struct RunSpeed {
  std::string name;  // the folder as the user gave it
  StepSetting setting;
  double samples_per_second = 0;
  std::string device = {};
};
// The same for a comparison: the run had another device.
std::vector<std::string> warnings_of(const Study& study, const RunSpeed& run);
// "runs/r20: 775.0 (760.1 to 790.2) samples/s predicted on 2 ranks with 32 samples each. Measured: ..."
std::string prediction_of(const StepModel& model, const RunSpeed& run);

// Reads a run's summary.json. Throws what read_run() throws. Throws Error(usage) if it contains no speed yet, or its
// model, precision or image size differs from the study's, or if it kept its weights together in a way that no study
// measures.
RunSpeed speed_of_run(const Study& study, const std::string& folder);

}  // namespace lockstep
