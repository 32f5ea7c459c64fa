// Delivers the checkpoints of a running training in order, as they appear. Use on one rank only.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "base/clock.hpp"
#include "run/training_status.hpp"

namespace lockstep {

class CheckpointFeed {
 public:
  // Another node's lock that has not changed for this long is stale: three heartbeats and a margin.
  static constexpr std::chrono::milliseconds usual_patience = std::chrono::seconds(35);

  // `folder` is the training's output folder, which need not exist yet.
  explicit CheckpointFeed(std::filesystem::path folder, std::chrono::milliseconds patience = usual_patience);

  struct Look {
    enum class Kind : std::uint8_t {
      checkpoint,    // the oldest checkpoint not yet delivered
      nothing_yet,   // call again later
      training_over  // the training has ended, and all checkpoints are delivered
    };
    Kind kind = Kind::nothing_yet;
    std::filesystem::path path;  // of the checkpoint; at the end, the checkpoint folder
    std::string image;           // bytes of the checkpoint, not validated
    std::string message;         // how the training ended
  };
  // Does not block. Skips a checkpoint that the training removes meanwhile. Throws as read_file() if a checkpoint
  // cannot be read for another reason.
  Look look();

 private:
  // Distinguishes successive files with the same name.
  struct FileMark {
    std::filesystem::file_time_type time;
    std::uintmax_t bytes = 0;
    bool operator==(const FileMark&) const = default;
  };

  bool is_over(const TrainingStatus& status);

  std::filesystem::path folder_;
  std::chrono::milliseconds patience_;
  std::map<std::int64_t, FileMark> given_;
  std::string lock_;  // its text at the start of `unchanged_`
  Stopwatch unchanged_;
};

}  // namespace lockstep
