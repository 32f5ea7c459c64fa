// What every program has: its ranks and what it computes with. Built once by launch/run, passed down.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "comm/communicator.hpp"
#include "runtime/stop/process_signals.hpp"

namespace lockstep {

// What was started, for the records of a run.
struct Invocation {
  std::vector<std::string> command_line;
  std::string commit;  // of the program's sources; empty: not known
  std::string build;   // "Release, g++ 12.2.0"
};

struct Session {
  const Communicator& world;
  std::unique_ptr<Backend> backend;         // null: the program computes nothing
  std::filesystem::path plan_folder = {};   // for PlanFile
  const ProcessSignals* signals = nullptr;  // null: nobody asks this process to stop
  std::string label = {};                   // in lines of the log, where a job has several trainings; empty: none
  Invocation invocation = {};

  Device& device() const { return backend->device(); }
};

}  // namespace lockstep
