// What every program has: its ranks and its device. Built once by launch/run, passed down.
#pragma once

#include <filesystem>
#include <memory>

#include "comm/communicator.hpp"
#include "device/device.hpp"
#include "runtime/stop/stop_signal.hpp"

namespace lockstep {

struct Session {
  const Communicator& world;
  std::unique_ptr<Device> device;
  std::filesystem::path plan_folder = {};  // for PlanFile
  const StopSignal* stop = nullptr;        // null: the program does not stop in good order
};

}  // namespace lockstep
