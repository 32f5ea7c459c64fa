// Status of a training, read only from the files in its output folder, for people and for monitoring programs. The
// files are of unknown origin, and may be incomplete at any time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "runtime/failure/run_state.hpp"

namespace lockstep {

// The holder of a folder's lock.
struct FolderHolder {
  enum class Kind : std::uint8_t {
    nobody,     // or a process known to have ended
    here,       // a running process on this node
    elsewhere,  // a process on another node: only heartbeats in the lock show whether it is alive
  };
  Kind kind = Kind::nobody;
  std::string description;  // "job 17 on n2 (process 4711)"
  std::string lock;         // text of the lock file
};
FolderHolder holder_of(const std::filesystem::path& folder);

struct TrainingStatus {
  std::optional<RunState> state;  // unset: there is no summary.json, or it has no state
  std::string failure;            // without a state and a holder: what failure.json says; empty if there is none
  FolderHolder holder;
  std::string model;
  std::string data;
  std::optional<std::int64_t> step;  // steps done
  std::optional<std::int64_t> steps;
  std::optional<double> samples_per_second;
  std::optional<double> seconds_left;           // while the state is `running`
  std::optional<double> test_accuracy;          // of the last test
  std::filesystem::path checkpoints;            // the checkpoint folder
  std::optional<std::int64_t> checkpoint_step;  // step of the newest checkpoint
};

// Never throws because of file contents: unreadable values are unset. `look` returns the holder of the folder. It is
// called before the summary is read, and again afterwards if there was no holder, because a training may have started
// in between.
TrainingStatus training_status(const std::filesystem::path& folder,
                               const std::function<FolderHolder(const std::filesystem::path&)>& look = holder_of);

// "running: job 17 on n2 (process 4711)", "stopped; the same command resumes it", ...
std::string describe_state(RunState state, const FolderHolder& holder);
// The same of a training that may have no state: "not started", or "failed: " and the sentence of failure.json.
std::string describe_state(const TrainingStatus& status);
// Lines for people: state, step, speed, time left, last checkpoint, last test.
std::string status_text(const TrainingStatus& status);

}  // namespace lockstep
