// Kernel choices kept between runs: only the first run for a network, a batch and a kind of device measures them.
//
// One text file for each kind of device and the options that matter to its kernels. Nothing that is wrong with a file
// or its folder ends a run: it costs one warning and the time to measure.
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
  // `conditions` is Device::plan_conditions(): a file that states others is not used. Empty folder: nothing is kept.
  PlanFile(const std::filesystem::path& folder, std::string conditions);

  // What earlier runs chose, as Ops::suggest_plan() takes it; empty where there is nothing of use.
  std::string read() const;
  // Adds `plan`, as Ops::export_plan() gives it, to what the file holds by now; the rest of it is kept.
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

// How many choices of a run came from earlier ones.
struct PlanUse {
  std::int64_t recalled = 0;
  std::int64_t measured = 0;
};
// Of the choices in `used`, those that `known` has in the same words. Both as Ops::export_plan() gives them.
PlanUse plan_use(std::string_view known, std::string_view used);

// Where plans are kept unless the user names a folder: `lockstep` in the user's cache; empty without one.
std::filesystem::path default_plan_folder(const JobEnvironment& job);

}  // namespace lockstep
