// Words of shell commands that several readers know.
#pragma once

#include <array>
#include <string_view>

namespace lockstep {

// Programs and keywords of bash with a command among the words that follow.
inline constexpr auto command_starters = std::to_array<std::string_view>(
    {"!",       "do",   "elif",   "else",    "env",  "exec", "if",      "mpiexec", "mpirun", "nice", "nohup",
     "numactl", "srun", "stdbuf", "taskset", "then", "time", "timeout", "until",   "while",  "{"});

}  // namespace lockstep
