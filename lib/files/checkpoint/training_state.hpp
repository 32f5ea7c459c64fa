// The state of a training that is not tensors: its progress, and what else it needs to resume bit for bit. A checkpoint
// stores it as JSON; data/README.md describes the fields.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "device/flat/loss_scale.hpp"
#include "recipe/test_augmentation.hpp"
#include "step/metrics.hpp"

namespace lockstep {

// Completed steps, epochs and samples.
struct TrainingProgress {
  std::int64_t step = 0;
  std::int64_t epoch = 0;  // complete epochs
  std::int64_t samples = 0;
  std::int64_t tested_step = 0;  // after which the last test was made; 0 if none
};

// The results of a test.
struct TestFigures {
  double loss = 0;
  double accuracy = 0;
};

// The accuracy that a test with test-time augmentation would have had without it.
struct PlainTest {
  TestTimeAugmentation augmentation = TestTimeAugmentation::plain;  // of that test
  double accuracy = 0;
  std::optional<double> mean_accuracy = {};  // likewise of the EMA, if one is kept
  bool operator==(const PlainTest&) const = default;
};

// The counters of the reports.
struct ReportState {
  Metrics stretch;           // since the last report
  double stretch_start = 0;  // training_seconds at that time
  std::int64_t trained_samples = 0;
  double seconds = 0;           // of all attempts
  double training_seconds = 0;  // of all attempts, without tests
  double test_loss = 0;         // of the last test
  double test_accuracy = 0;
  double score = 0;  // accuracy that selects the best checkpoint: of the model to use; of the validation split, if any
  std::optional<TestFigures> mean_test = {};    // last test of the EMA, if one is kept
  std::optional<PlainTest> plain_test = {};     // of the last test, if it had test-time augmentation
  std::optional<double> plain_validation = {};  // likewise of the last validation: the accuracy of the model to use
};

// Everything that affects the bits of the result and is not part of a recipe.
struct Origin {
  int ranks = 1;  // that have samples
  std::string device;
  std::string gradients;                        // how gradients are summed, and in how many buckets
  std::string plan_conditions;                  // Device::plan_conditions(): what the choice of kernels depends on
  std::map<std::string, std::string> versions;  // of the program and every library
};

// The tests so far, as early stopping judges them.
struct EarlyStopState {
  std::string metric;  // "validation-loss"
  double best = 0;
  std::int64_t best_step = 0;
  std::int64_t tests = 0;  // since the best one, without improvement
};

struct TrainingState {
  TrainingProgress progress;
  ReportState report;
  std::optional<LossScale> loss_scale;
  nlohmann::json recipe;  // an object of plain values: see resume_rules
  Origin origin;
  std::string kernel_plan;                        // Ops::export_plan()
  std::map<std::int64_t, double> scores;          // accuracy of the checkpoint of each tested step
  std::optional<EarlyStopState> early_stop = {};  // after the first test, if the training uses it
  std::vector<std::int64_t> own_updates = {};     // see WeightSync
};

std::string training_state_text(const TrainingState& state);
// Throws std::runtime_error with a short reason if `text` is not a state, or contains impossible values.
TrainingState parse_training_state(const std::string& text);

}  // namespace lockstep
