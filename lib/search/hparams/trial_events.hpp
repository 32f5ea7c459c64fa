// What a search writes for TensorBoard (--tensorboard FOLDER), for its table of hyperparameters:
//
//   FOLDER/events.out.tfevents.search           the experiment
//   FOLDER/trial-3/events.out.tfevents.search   settings, results and end of trial 3
//   FOLDER/trial-3/training                     the training's own events
//
// Each file is a fixed sequence of records. What a killed or a full disk's search has not written is appended later.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "search/hparams/hparams_event.hpp"
#include "search/space/space.hpp"

namespace lockstep {

class TrialEvents {
 public:
  // Of the search in `output`. Throws Error(usage) if `folder` has events of another search, or cannot be written.
  // Later failures are warnings.
  TrialEvents(const Space& space, const std::filesystem::path& output, std::filesystem::path folder);

  std::filesystem::path training_folder(std::int64_t trial) const { return folder_of(trial) / "training"; }

  // Call these in the same order again when a search continues: records that are in the files are not repeated.
  void start(std::int64_t trial, const std::vector<OptionWord>& settings);
  void add_result(std::int64_t trial, std::int64_t steps, double metric);
  void end(std::int64_t trial, SessionStatus status);

 private:
  std::filesystem::path folder_of(std::int64_t trial) const { return folder_ / ("trial-" + std::to_string(trial)); }
  void add(std::int64_t trial, std::string record);

  const Space& space_;
  std::filesystem::path folder_;
  std::map<std::int64_t, std::vector<std::string>> records_;  // by trial
  bool has_warned_ = false;
};

}  // namespace lockstep
