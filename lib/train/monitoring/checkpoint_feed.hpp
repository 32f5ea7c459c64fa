// The checkpoints of a training that runs, one after another as they appear. For one rank only.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "base/clock.hpp"
#include "train/monitoring/training_status.hpp"

namespace lockstep {

class CheckpointFeed {
 public:
  // A lock of another node's that has not changed for so long is nobody's: three heartbeats and a little more.
  static constexpr std::chrono::milliseconds usual_patience = std::chrono::seconds(35);

  // Of the training whose output folder that is; it need not be there yet.
  explicit CheckpointFeed(std::filesystem::path folder, std::chrono::milliseconds patience = usual_patience);

  struct Look {
    enum class Kind : std::uint8_t {
      checkpoint,    // the oldest that was not given out yet
      nothing_yet,   // look again in a while
      training_over  // and all checkpoints were given out
    };
    Kind kind = Kind::nothing_yet;
    std::filesystem::path path;  // of the checkpoint; of an ended training's folder of them
    std::string image;           // its bytes, not checked
    std::string message;         // how the training ended
  };
  // Does not wait. A checkpoint that the training removes meanwhile is passed over. Throws as read_file() where one
  // cannot be read for another reason.
  Look look();

 private:
  // What tells one file of a name from the next.
  struct FileMark {
    std::filesystem::file_time_type time;
    std::uintmax_t bytes = 0;
    bool operator==(const FileMark&) const = default;
  };

  bool is_over(const TrainingStatus& status);

  std::filesystem::path folder_;
  std::chrono::milliseconds patience_;
  std::map<std::int64_t, FileMark> given_;
  std::string lock_;  // its text when `unchanged_` began
  Stopwatch unchanged_;
};

}  // namespace lockstep
