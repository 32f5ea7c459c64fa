// A search whose trials run in the tasks of a job array, which share it (shared_search.hpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "search/space/space.hpp"

namespace lockstep {

// Slurm's default limit of an array is 1001 (MaxArraySize).
inline constexpr std::int64_t most_array_tasks = 1000;

// The command that submits the array. It has a task for each trial, of which `max_concurrent_trials` run at once: a
// task that ends early is replaced, and one that starts after the search has ended does nothing. Each task has as many
// Slurm tasks as a trial has ranks. `scripts` is the folder of search.sbatch, which gets `arguments`. `options` are
// further options of sbatch, one word each, which override these. Throws Error(usage) if one of them is not an option.
std::vector<std::string> array_command(const Space& space, const std::filesystem::path& scripts,
                                       const std::vector<std::string>& options,
                                       const std::vector<std::string>& arguments);

}  // namespace lockstep
