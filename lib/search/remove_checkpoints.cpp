#include "search/remove_checkpoints.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/io/descriptor.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "files/checkpoint/checkpoint.hpp"
#include "files/checkpoint/custom_checkpoint.hpp"
#include "run/checkpoint_files.hpp"
#include "run/run_file.hpp"
#include "search/trial/trial_result.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// The folder of a trial's checkpoints, if neither it nor the trial's folder is a link; -1 otherwise.
Descriptor open_checkpoints(const fs::path& trial) {
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  // careful-open: only to change names in it, and no link is followed
  const Descriptor outer(::open(trial.c_str(), flags));
  if (outer < 0) return Descriptor(-1);
  // careful-open: likewise
  return Descriptor(::openat(outer, run_files::checkpoints, flags));
}

// The recipe, or the options of a custom training loop, in the checkpoint that these bytes of a file are, if it is of
// `step`. Throws Error if they are no such checkpoint.
std::optional<nlohmann::json> recipe_in(const Space& space, const fs::path& file, std::string& image,
                                        std::int64_t step) {
  if (space.has_custom_loop()) {
    const CustomCheckpoint custom = parse_custom_checkpoint(file, image);
    return custom.steps_completed == step ? std::optional(custom.options) : std::nullopt;
  }
  const Checkpoint checkpoint = parse_checkpoint(file, image);
  return checkpoint.state.progress.step == step ? std::optional(checkpoint.state.recipe) : std::nullopt;
}

// The same of a file; nothing if it is something else. `status` gets the file's.
std::optional<nlohmann::json> recipe_in(const Space& space, const fs::path& file, std::int64_t step,
                                        struct stat& status) {
  const std::optional<RegularFile> opened = open_run_file(file);
  if (!opened || ::fstat(opened->descriptor(), &status) != 0 || status.st_nlink != 1) return std::nullopt;
  if (opened->bytes() > tensor_file_limits::file_bytes) return std::nullopt;
  try {
    std::string image = read_at(*opened, 0, opened->bytes());
    return recipe_in(space, file, image, step);
  } catch (const Error&) {
    return std::nullopt;  // not written by a trial, or damaged: left for the user to see
  }
}

// Removes the file of `status` from a folder, unless another one has its name by now. False, with errno, if it cannot.
bool remove_from(const Descriptor& folder, const std::string& name, const struct stat& status) {
  struct stat now {};
  if (::fstatat(folder, name.c_str(), &now, AT_SYMLINK_NOFOLLOW) != 0) return false;
  if (now.st_dev != status.st_dev || now.st_ino != status.st_ino) return true;
  return ::unlinkat(folder, name.c_str(), 0) == 0;
}

}  // namespace

RemovedCheckpoints remove_checkpoints(const Space& space, const SearchFolder& folder,
                                      const std::map<std::int64_t, TrialRecord>& trials) {
  std::vector<TrialCheckpoint> checkpoints;
  for (const auto& [number, trial] : trials) {
    const fs::path path = folder.trial(number);
    if (trial.steps == 0 || open_checkpoints(path) < 0) continue;
    const std::map<std::int64_t, std::optional<double>> metrics = metrics_by_step(space, path);
    for (const auto& [step, file] : checkpoints_in(path / run_files::checkpoints)) {
      if (step > trial.steps) continue;
      const auto metric = metrics.find(step);
      checkpoints.push_back({number, step, metric == metrics.end() ? std::nullopt : metric->second});
    }
  }
  const std::vector<TrialCheckpoint> remaining =
      remaining_checkpoints(space.kept, checkpoints, space.smaller_is_better);
  std::map<std::int64_t, std::vector<std::int64_t>> steps;
  for (const TrialCheckpoint& one : checkpoints) steps[one.trial].push_back(one.step);
  RemovedCheckpoints removed;
  for (const auto& [number, list] : steps) {
    const fs::path path = folder.trial(number) / run_files::checkpoints;
    const Descriptor opened = open_checkpoints(folder.trial(number));
    struct stat status {};
    const std::int64_t last = trials.at(number).steps;
    const std::optional<nlohmann::json> recipe = recipe_in(space, path / checkpoint_name(last), last, status);
    for (const std::int64_t step : list) {
      const bool remains = std::ranges::any_of(
          remaining, [&](const TrialCheckpoint& one) { return one.trial == number && one.step == step; });
      const std::string name = checkpoint_name(step);
      if (remains || !recipe || recipe_in(space, path / name, step, status) != recipe) continue;
      if (!remove_from(opened, name, status)) {
        log::warning("cannot remove '{}': {}.", (path / name).string(), system_error_message(errno));
        continue;
      }
      ++removed.files;
      removed.bytes += status.st_size;
    }
  }
  return removed;
}

}  // namespace lockstep
