// summary.json: description and status of a training, from its first step on. apps/files.md documents each field.
//
// The file is written atomically at the start, after each test and at the end. If a training is killed, the state stays
// `running`, but nobody holds the folder's lock. A failure changes the state in place (runtime/failure/run_state.hpp).
// Later attempts keep the start time and add an interruption.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "files/folder/folder_lock.hpp"
#include "runtime/failure/run_state.hpp"

namespace lockstep {

// The current time in UTC: "2026-11-22T07:20:00Z".
std::string utc_time();

// Reads a summary.json of unknown origin; null if the file is unreadable, not JSON, or nested too deeply.
nlohmann::json read_summary(const std::filesystem::path& file);

// The command in a summary of unknown origin, quoted for a shell, on one line; empty if there is none. The launcher
// (mpirun, srun) is not part of it.
std::string command_text(const nlohmann::json& summary);

class RunSummary {
 public:
  // Reads the summary of an earlier attempt in the folder of `output`, which outlives this. Changes nothing.
  explicit RunSummary(FolderLock& output);

  // Whether the file is of an unfinished training, which another attempt then resumes.
  bool is_unfinished() const { return state_ && *state_ != RunState::done; }
  // The training resumes after `step` steps. Its start time is kept, and the unfinished attempt becomes an
  // interruption.
  void go_on(std::int64_t step);

  // Writes the file: `fields` and those of this class. Throws Error if another job has taken over the folder, or if
  // writing fails.
  void write(RunState state, nlohmann::json fields);

 private:
  FolderLock& output_;
  nlohmann::json earlier_;         // of earlier attempts
  std::optional<RunState> state_;  // state in the file; unset if the file is absent or invalid
  std::string started_;
  nlohmann::json interruptions_ = nlohmann::json::array();
};

}  // namespace lockstep
