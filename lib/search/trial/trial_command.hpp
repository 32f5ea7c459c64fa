// The command of a trial: the program's own command line, with the trial's settings, the full length of the training,
// and the step at which it ends for now.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "recipe/recipe.hpp"
#include "search/space/space.hpp"

namespace lockstep {

// Output of a program that was run to its end.
struct ProgramOutput {
  int code = 0;
  std::vector<std::string> lines;
};
using RunProgram = std::function<ProgramOutput(const std::vector<std::string>& words)>;

// How long a trial is trained.
struct TrialLength {
  std::int64_t steps_per_epoch = 1;  // of a custom training loop 1
  std::int64_t epochs = 1;           // of the whole training: --epochs
  std::int64_t steps = 1;            // until the rung: --max-steps
};

class TrialCommands {
 public:
  // `run` runs the program; it is called for questions that end at once (--print-recipe). Throws Error(usage), with
  // file and line, if there is no such program, or if it refuses an option: it is asked about the smallest and the
  // largest value of each hyperparameter, and about every category. The answer also says whether the program is a
  // custom training loop, and which metrics it reports: Error(usage) if the space's is not one of them, or if its unit
  // is not batches. For a training, throws as read_manifest() if the data cannot be read, Error(usage) if they lack the
  // split that the metric needs, and Error(other) if a signal ends the program.
  TrialCommands(const Space& space, RunProgram run);

  // The length of a training with these settings up to a rung of `length`, in the space's unit. Throws Error(usage) if
  // the program refuses the settings, or if the batch does not fit the ranks or the data.
  TrialLength length(const std::vector<OptionWord>& settings, std::int64_t length);

  // `threads` is for each rank, unless it is 0 or the space states --threads.
  std::vector<std::string> words(const std::vector<OptionWord>& settings, const TrialLength& length,
                                 const std::filesystem::path& output, int threads) const;

 private:
  ProgramOutput ask(const std::vector<std::string>& words) const;
  std::vector<std::string> with(const std::vector<OptionWord>& settings) const;
  nlohmann::json check_options();
  void check_custom_loop(const nlohmann::json& answer) const;
  void check_data();
  BatchOptions batch_of(const std::vector<OptionWord>& settings);

  const Space& space_;
  RunProgram run_;
  std::string program_;  // a path, or a name in PATH
  std::int64_t samples_ = 0;
  std::map<std::vector<std::string>, BatchOptions> batches_;  // by the settings that change a batch
};

}  // namespace lockstep
