// The files in the output folder of a search, and checks before they are used: others may put files there, too.
//
//   FOLDER/search.jsonl     the journal (journal.hpp)
//   FOLDER/trial-3          output folder of trial 3; trial-3.log: what its commands printed
//   FOLDER/trial-3.end.json exit report of its last attempt, if it failed
//   FOLDER/best.h5          the best trial's model.h5, at the end
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/io/descriptor.hpp"

namespace lockstep {

inline constexpr const char* journal_file = "search.jsonl";

// The number of a trial whose folder has this name: 3 for "trial-3".
std::optional<std::int64_t> trial_in_name(const std::string& name);

class SearchFolder {
 public:
  explicit SearchFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path journal() const { return path_ / journal_file; }
  std::filesystem::path trial(std::int64_t number) const;
  std::filesystem::path log(std::int64_t trial) const;
  std::filesystem::path exit_report(std::int64_t trial) const;
  std::filesystem::path exit_report(std::int64_t trial, std::int64_t lease) const;  // in a shared search
  std::filesystem::path model(std::int64_t trial) const { return this->trial(trial) / "model.h5"; }
  std::filesystem::path best_model() const { return path_ / "best.h5"; }

  // Throws Error(usage) if there is a folder of a trial. Call it if there is no journal.
  void require_no_trials() const;
  // Throws Error(usage) if the trial's name belongs to a link, or to anything that is no folder.
  void require_own_folder(std::int64_t trial) const;

  // Appends to the log of a trial. The file is locked until the last process that has the descriptor ends. Nothing if
  // an earlier process of the trial still has it: one of a killed search, which is stopping. Throws as
  // system_failure().
  std::optional<Descriptor> open_log(std::int64_t trial) const;

  // Copies the model of a trial to best.h5, if it is intact and has been trained for `steps` steps. Throws
  // Error(bad_data) if not, and as write_file_atomically().
  void keep_best_model(std::int64_t trial, std::int64_t steps) const;

 private:
  std::filesystem::path path_;
};

}  // namespace lockstep
