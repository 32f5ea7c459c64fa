// What every program gets: its ranks and its backend. Built once by launch/run and passed down.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "comm/communicator.hpp"
#include "runtime/stop/process_signals.hpp"

namespace lockstep {

// How the program was started and built, for the records of a run.
struct Invocation {
  std::vector<std::string> command_line;
  std::string commit;  // of the program's sources; empty if unknown
  std::string build;   // "Release, g++ 12.2.0"
};

struct Session {
  const Communicator& world;
  std::unique_ptr<Backend> backend;         // null if the program computes nothing
  std::filesystem::path plan_folder = {};   // for PlanFile
  const ProcessSignals* signals = nullptr;  // null if stop requests are not handled
  std::string label = {};                   // in log lines, if the job runs several trainings; empty if none
  Invocation invocation = {};

  Device& device() const { return backend->device(); }
};

}  // namespace lockstep
