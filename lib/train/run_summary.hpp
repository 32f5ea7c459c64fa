// summary.json: what a training is and how it stands, from its first step on. Field by field in apps/files.md.
//
// It is written whole when the training begins, after each test and at the end. A training that is killed leaves the
// state `running`, and nobody holds the folder's lock; a failure marks it in place (runtime/failure/run_state.hpp).
// Attempts that go on keep its start and add an interruption.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "files/folder/folder_lock.hpp"
#include "runtime/failure/run_state.hpp"

namespace lockstep {

// Now, in UTC: "2026-11-22T07:20:00Z".
std::string utc_time();

// The object in a summary.json of unknown origin; null where the file cannot be read, is no JSON, or is nested more
// deeply than any that is written.
nlohmann::json read_summary(const std::filesystem::path& file);

// The command of a summary of unknown origin as one line that a shell reads as its words; empty where there is none.
// What started its ranks (mpirun, srun) is not in it.
std::string command_text(const nlohmann::json& summary);

class RunSummary {
 public:
  // Reads what an earlier attempt left in the folder of `output`, which outlives this; changes nothing.
  explicit RunSummary(FolderLock& output);

  // Whether the file is that of a training which had not ended: then another attempt goes on with it.
  bool is_unfinished() const { return state_ && *state_ != RunState::done; }
  // The training goes on where `step` steps are done: its start stays, and an attempt that did not end it is an
  // interruption.
  void go_on(std::int64_t step);

  // Writes the file: `fields` and those of this class. Throws Error if the folder is another job's by now, or cannot be
  // written.
  void write(RunState state, nlohmann::json fields);

 private:
  FolderLock& output_;
  nlohmann::json earlier_;         // of the attempts before
  std::optional<RunState> state_;  // there; nothing where it is no such file
  std::string started_;
  nlohmann::json interruptions_ = nlohmann::json::array();
};

}  // namespace lockstep
