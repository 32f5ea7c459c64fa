// What every program has: its ranks and its device. Built once by launch/run, passed down.
#pragma once

#include <filesystem>
#include <memory>

#include "comm/communicator.hpp"
#include "device/device.hpp"
#include "runtime/stop/process_signals.hpp"

namespace lockstep {

struct Session {
  const Communicator& world;
  std::unique_ptr<Device> device;
  std::filesystem::path plan_folder = {};   // for PlanFile
  const ProcessSignals* signals = nullptr;  // null: nobody asks this process to stop
};

}  // namespace lockstep
