// Runs work that may crash in a process of its own: the same program, started again with an argument that requests it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

struct HelperLimits {
  int seconds = 60;                                  // of wall-clock time, and of CPU time
  std::size_t more_memory = std::size_t{256} << 20;  // bytes of address space beyond what the program uses at its start
  std::size_t output = std::size_t{1} << 20;         // bytes
};

struct HelperResult {
  std::string output;             // as printed; no more trustworthy than the helper's input
  int exit_code = -1;             // -1 if a signal ended it
  std::optional<int> signal;      // the signal that ended it
  bool took_too_long = false;     // it was killed because it exceeded the time limit
  bool printed_too_much = false;  // it was killed because it exceeded the output limit
};

// Starts this program with `arguments`, without a shell or a PATH search, and waits until it ends. The helper prints
// into a pipe, has no standard input, and ends when this process ends. Call before MPI starts, which may forbid fork().
// Throws Error(other) if the process cannot be started.
HelperResult run_helper(const std::vector<std::string>& arguments, const HelperLimits& limits = {});

// A helper calls this first. Limits its memory, CPU time and open files, and forbids it to write files.
void confine_helper(const HelperLimits& limits = {});

// Limits this process to `bytes` of address space beyond what it has mapped now.
void limit_more_memory(std::size_t bytes);

}  // namespace lockstep
