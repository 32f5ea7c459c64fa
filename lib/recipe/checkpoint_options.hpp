// When checkpoints are written, where, and which one a training goes on from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace lockstep {

// A checkpoint stays while one of the two rules names it.
struct KeepRule {
  int latest = 2;  // at least 1
  int best = 1;    // by the accuracy of the test that was made at that step: see ReportState::score
};

// Whichever comes first since the last checkpoint; 0: not by this.
struct CheckpointInterval {
  std::int64_t steps = 0;
  std::int64_t epochs = 1;
  double seconds = 600;
};

// "500" (steps), "2epochs", "10min", "90s", "1h", or several of them with commas between. Nothing if it is none.
std::optional<CheckpointInterval> parse_checkpoint_interval(std::string_view text);
// As parse_checkpoint_interval() takes it.
std::string checkpoint_interval_text(const CheckpointInterval& interval);

struct CheckpointOptions {
  std::filesystem::path folder;  // empty: OUTPUT/checkpoints, or none without --output
  CheckpointInterval every;
  KeepRule keep;
  std::string resume = "auto";  // auto | never | a file
};

// Whether a checkpoint is due, from the step of the last one.
class CheckpointClock {
 public:
  CheckpointClock(const CheckpointInterval& interval, std::int64_t steps_per_epoch, std::int64_t step)
      : interval_(interval), steps_per_epoch_(steps_per_epoch), last_step_(step) {}

  bool is_due(std::int64_t step) const;  // after `step` steps
  void note_written(std::int64_t step);

 private:
  CheckpointInterval interval_;
  std::int64_t steps_per_epoch_;
  std::int64_t last_step_;
  Stopwatch watch_;
};

}  // namespace lockstep
