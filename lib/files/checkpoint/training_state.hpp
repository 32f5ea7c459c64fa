// All of a training that is no tensor: where it stands, and what it needs beside its weights to go on with the same
// bits. A checkpoint keeps it as JSON; field by field in data/README.md.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "device/flat/loss_scale.hpp"
#include "step/metrics.hpp"

namespace lockstep {

// Steps, epochs and samples that are done.
struct TrainingProgress {
  std::int64_t step = 0;
  std::int64_t epoch = 0;  // whole epochs
  std::int64_t samples = 0;
  std::int64_t tested_step = 0;  // after which the last test was made; 0: none yet
};

// Of a test.
struct TestFigures {
  double loss = 0;
  double accuracy = 0;
};

// What reports count from one line to the next.
struct ReportState {
  Metrics stretch;           // since the last report
  double stretch_start = 0;  // training_seconds then
  std::int64_t trained_samples = 0;
  double seconds = 0;           // of all attempts
  double training_seconds = 0;  // of those, without tests
  double test_loss = 0;         // of the last test
  double test_accuracy = 0;
  double score = 0;  // accuracy of what is to be used that the best checkpoint is chosen by: of the validation split,
                     // if there is one
  std::optional<TestFigures> mean_test = {};  // of the last test of the mean of weights, where one is kept
};

// What the bits depend on and a recipe does not say.
struct Origin {
  int ranks = 1;
  std::string device;
  std::string gradients;                        // how they are summed, and in how many pieces
  std::string plan_conditions;                  // Device::plan_conditions(): what kernels, and so bits, depend on
  std::map<std::string, std::string> versions;  // of the program and every library
};

struct TrainingState {
  TrainingProgress progress;
  ReportState report;
  std::optional<LossScale> loss_scale;
  nlohmann::json recipe;  // an object of plain values: see resume_rules
  Origin origin;
  std::string kernel_plan;                // Ops::export_plan()
  std::map<std::int64_t, double> scores;  // accuracy of the checkpoint of each step that was tested, by step
};

std::string training_state_text(const TrainingState& state);
// Throws std::runtime_error with a few words if `text` is no such state, or says what cannot be.
TrainingState parse_training_state(const std::string& text);

}  // namespace lockstep
