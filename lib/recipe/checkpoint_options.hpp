// Checkpoint options: when and where checkpoints are written, and which one a training resumes from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace lockstep {

// A checkpoint is kept if one of the two rules selects it.
struct KeepRule {
  int latest = 2;  // the newest, at least 1
  int best = 1;    // the best by the accuracy of the test at their step; see ReportState::score
};

// A checkpoint is due at whichever limit is reached first since the last one. 0 disables a limit.
struct CheckpointInterval {
  std::int64_t steps = 0;
  std::int64_t epochs = 1;
  double seconds = 600;
};

// Parses "500" (steps), "2epochs", "10min", "90s", "1h", or a comma-separated combination. std::nullopt if invalid.
std::optional<CheckpointInterval> parse_checkpoint_interval(std::string_view text);
// The inverse of parse_checkpoint_interval().
std::string checkpoint_interval_text(const CheckpointInterval& interval);

struct CheckpointOptions {
  std::filesystem::path folder;  // empty: OUTPUT/checkpoints, or no checkpoints without --output
  CheckpointInterval every;
  KeepRule keep;
  std::string resume = "auto";  // auto | never | a file
};

// Decides when a checkpoint is due, starting from the step of the last one.
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
