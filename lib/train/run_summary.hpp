// summary.json: description and status of a training, from its first step on. apps/files.md documents each field.
//
// The file is written atomically at the start, after each test and at the end. If a training is killed, the state stays
// `running`, but nobody holds the folder's lock. A failure changes the state in place (run/run_state.hpp).
// Later attempts keep the start time and add the attempt that they resume.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files/folder/folder_lock.hpp"
#include "run/summary.hpp"

namespace lockstep {

// A command, quoted for a shell, on one line.
std::string command_text(std::span<const std::string> words);

// Whether `name` can be that of a result of a program's own, a file in the output folder itself.
bool is_result_name(std::string_view name);

class RunSummary {
 public:
  // Reads the summary of an earlier attempt in the folder of `output`, which outlives this. Changes nothing.
  explicit RunSummary(FolderLock& output);

  // Whether the file is of an unfinished training, which another attempt then resumes.
  bool is_unfinished() const { return earlier_ && earlier_->state != RunState::done; }
  // Those of the file; an empty object if there is none.
  nlohmann::json fields() const { return earlier_ ? earlier_->fields : nlohmann::json::object(); }
  // Whether the training of the file has the same --epochs. Its learning rates are then the same. So a training that
  // ended earlier, by --max-steps or --early-stop, can be resumed.
  bool has_epochs(const nlohmann::json& epochs) const;
  // The valid names in the file's field `results`: what a custom run has written there.
  std::vector<std::string> results() const;
  // Of the whole training, as the attempt of the file planned it.
  std::optional<std::int64_t> steps() const { return earlier_ ? earlier_->steps : std::nullopt; }
  // The training resumes after `step` steps. Its start time is kept. The attempt of the file is recorded, unless it was
  // done and no steps are left.
  void go_on(std::int64_t step, std::int64_t steps_left);

  // Writes the file: `fields` and those of this class. Throws Error if another job has taken over the folder, or if
  // writing fails.
  void write(RunState state, nlohmann::json fields);

 private:
  FolderLock& output_;
  std::optional<Summary> earlier_;  // unset if there is none with a state
  std::int64_t started_;            // in seconds since 1970
  std::vector<Interruption> interruptions_;
};

}  // namespace lockstep
