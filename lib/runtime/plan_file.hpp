// Kernel choices that are kept between runs. Only the first run for a network, a batch size and a kind of device
// measures kernels.
//
// There is one text file for each kind of device and set of options that affect its kernels. A problem with a file or
// its folder never ends a run: it costs one warning, and the time to measure.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "job/job_environment.hpp"

namespace lockstep {

class PlanFile {
 public:
  // `conditions` is Device::plan_conditions(). A file with other conditions is not used. If the folder is empty,
  // nothing is kept.
  PlanFile(const std::filesystem::path& folder, std::string conditions);

  // The choices of earlier runs, in the form that Ops::suggest_plan() takes. Empty if there are none.
  std::string read() const;
  // Merges `plan`, in the form of Ops::export_plan(), into the file's current content.
  void keep(std::string_view plan) const;

  // "folder/cuda-nvidia-h200-...-0123456789abcdef.plan"
  const std::filesystem::path& path() const { return path_; }

 private:
  using Choices = std::map<std::string, std::string, std::less<>>;  // kernel by problem

  struct Content {
    Choices choices;
    std::string mistake;  // why the file is not used
  };
  Content load() const;
  Choices parse(std::string_view text) const;

  std::string conditions_;
  std::filesystem::path path_;  // empty: nothing is kept
};

// How many of a run's choices came from earlier runs.
struct PlanUse {
  std::int64_t recalled = 0;
  std::int64_t measured = 0;
};
// Counts the choices in `used` that `known` contains unchanged. Both have the form of Ops::export_plan().
PlanUse plan_use(std::string_view known, std::string_view used);

// The default folder of kernel plans: `lockstep` in the user's cache folder. Empty if there is no cache folder.
std::filesystem::path default_plan_folder(const JobEnvironment& job);

}  // namespace lockstep
