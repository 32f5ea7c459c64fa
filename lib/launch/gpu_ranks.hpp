// --gpus: one plain command for all GPUs of a node. The program starts itself anew under mpirun, a rank for each GPU.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "job/job_environment.hpp"

namespace lockstep {

// Refuses what is neither a number nor `all`, and --gpus in a program that a launcher has started.
void declare_gpus(CLI::App& app, std::string& gpus);

// The words that start one rank for each of the GPUs asked for, out of `count` that are visible. Empty where the
// program goes on as it is: without --gpus, for one GPU, or where declare_gpus() will refuse it. `words` are the
// program's, its path first. Throws Error(usage) where there are too few GPUs, and where mpirun would not keep to this
// node.
std::vector<std::string> arguments_for_gpus(const std::vector<std::string>& words,
                                            const std::function<std::size_t()>& count, const JobEnvironment& job);

// First thing in main, before MPI. Returns nothing where the program goes on, an exit code after a mistake, and not at
// all where mpirun takes this process's place.
std::optional<int> spread_over_gpus(int argc, char** argv, const std::function<std::size_t()>& count);
// The same on the GPUs that CUDA shows.
std::optional<int> spread_over_gpus(int argc, char** argv);

}  // namespace lockstep
