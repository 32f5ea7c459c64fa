// Work that may crash, in a process of its own: this program, started once more with an argument that asks for it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

struct HelperLimits {
  int seconds = 60;                                  // of time on the clock; of processor time as well
  std::size_t more_memory = std::size_t{256} << 20;  // bytes, beyond what the program takes as it starts
  std::size_t output = std::size_t{1} << 20;         // bytes
};

struct HelperResult {
  std::string output;             // as it was printed: to be trusted as little as what the helper read
  int exit_code = -1;             // -1 where it was ended
  std::optional<int> signal;      // that ended it
  bool took_too_long = false;     // and was ended for that
  bool printed_too_much = false;  // likewise
};

// Starts this program with `arguments`, by no shell and no search for its name, and waits for its end. The helper
// prints into a pipe, reads nothing, and ends when this process ends. To be called before MPI starts, which may forbid
// forks. Throws Error(other) where the system starts no process.
HelperResult run_helper(const std::vector<std::string>& arguments, const HelperLimits& limits = {});

// What a helper calls first. Limits its memory, processor time and open files, and forbids it to write files.
void confine_helper(const HelperLimits& limits = {});

// Allows this process `bytes` more than it has mapped now.
void limit_more_memory(std::size_t bytes);

}  // namespace lockstep
