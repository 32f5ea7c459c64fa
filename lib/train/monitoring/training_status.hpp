// How a training stands, from the files in its output folder alone: for people, and for programs that work beside it.
// The files are of unknown origin, and may be half written at this moment.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "runtime/failure/run_state.hpp"

namespace lockstep {

// Who holds a folder's lock.
struct FolderHolder {
  enum class Kind : std::uint8_t {
    nobody,     // or one that is known to be gone
    here,       // a process of this node, which runs
    elsewhere,  // on another node: only the heartbeats in the lock tell whether it lives
  };
  Kind kind = Kind::nobody;
  std::string description;  // "job 17 on n2 (process 4711)"
  std::string lock;         // the file's text
};
FolderHolder holder_of(const std::filesystem::path& folder);

struct TrainingStatus {
  std::optional<RunState> state;  // nothing: no summary.json, or none that says it
  FolderHolder holder;
  std::string model;
  std::string data;
  std::optional<std::int64_t> step;  // done
  std::optional<std::int64_t> steps;
  std::optional<double> samples_per_second;
  std::optional<double> seconds_left;           // while it is `running`
  std::optional<double> test_accuracy;          // of the last test
  std::filesystem::path checkpoints;            // the folder
  std::optional<std::int64_t> checkpoint_step;  // the newest one's
};

// Never throws for what is in the files: what cannot be read is not known. `look` tells who holds the folder: before
// the summary is read, and again after it where nobody did, for a training may have begun in between.
TrainingStatus training_status(const std::filesystem::path& folder,
                               const std::function<FolderHolder(const std::filesystem::path&)>& look = holder_of);

// "running: job 17 on n2 (process 4711)", "stopped; the same command goes on", ...
std::string describe_state(RunState state, const FolderHolder& holder);
// Lines for people: state, step, speed, time left, last checkpoint, last test.
std::string status_text(const TrainingStatus& status);

}  // namespace lockstep
