#include "search/journal/search_array.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "slurm/submit/sbatch_arguments.hpp"

namespace lockstep {

std::vector<std::string> array_command(const Space& space, const std::filesystem::path& scripts,
                                       const std::vector<std::string>& options,
                                       const std::vector<std::string>& arguments) {
  const std::int64_t tasks = std::min(space.searcher.max_trials, most_array_tasks);
  const std::int64_t at_once = std::min(space.searcher.max_concurrent_trials, tasks);
  std::vector<std::string> words = {(scripts / "site_sbatch").string(), fmt::format("--array=1-{}%{}", tasks, at_once),
                                    fmt::format("--ntasks={}", space.ranks_per_trial),
                                    fmt::format("--ntasks-per-node={}", space.ranks_per_trial)};
  std::ranges::copy(sbatch_arguments("", {.time = "", .options = options}), std::back_inserter(words));
  words.push_back((scripts / "search.sbatch").string());
  std::ranges::copy(arguments, std::back_inserter(words));
  return words;
}

}  // namespace lockstep
