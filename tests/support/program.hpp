// Runs a real program and keeps what it says.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace lockstep {

struct ProgramResult {
  int exit_code = -1;      // -1 where a signal ended it, the timeout's included
  bool timed_out = false;  // it and all it started were killed
  std::string output;
  std::string errors;
};

// Runs `arguments[0]`, looked up in PATH, with this process's environment changed by `environment`. Throws
// std::system_error if it cannot be started. With sanitizers it has four times as long.
ProgramResult run_program(const std::vector<std::string>& arguments,
                          const std::map<std::string, std::string>& environment = {},
                          std::chrono::seconds timeout = std::chrono::seconds(60));

// A program of this build by its name: the folder of the running test holds them all.
std::filesystem::path built_program(const std::string& name);

// "mpirun -n RANKS ...", as tests start it; CTest's environment lets it run as root.
std::vector<std::string> under_mpirun(int ranks, const std::vector<std::string>& arguments);

}  // namespace lockstep
