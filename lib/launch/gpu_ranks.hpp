// --gpus: one command for all GPUs of a node. The program restarts itself under mpirun with one rank for each GPU.
#pragma once

#include <CLI/App.hpp>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "job/job_environment.hpp"

namespace lockstep {

// Refuses a value other than a number or `all`, and --gpus in a program that a launcher has started.
void declare_gpus(CLI::App& app, std::string& gpus);

// The command that starts one rank for each requested GPU, out of `count` visible ones. Empty if the program continues
// unchanged: without --gpus, for one GPU, to print help, or if declare_gpus() will refuse the value. `words` is the
// program's command line, its path first. Throws Error(usage) if there are too few GPUs, or if mpirun would use other
// nodes too.
std::vector<std::string> arguments_for_gpus(const std::vector<std::string>& words,
                                            const std::function<std::size_t()>& count, const JobEnvironment& job);

// Call it first in main, before MPI starts. Returns nullopt if the program continues, or an exit code after a usage
// error. Does not return if mpirun replaces this process.
std::optional<int> spread_over_gpus(int argc, char** argv, const std::function<std::size_t()>& count);
// Counts the GPUs that CUDA reports.
std::optional<int> spread_over_gpus(int argc, char** argv);

}  // namespace lockstep
