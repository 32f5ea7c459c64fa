// A device that repeats what it recorded, as a GPU repeats a graph: another device's arithmetic, with every call kept
// as it was asked, addresses and numbers alike.
#pragma once

#include <memory>

#include "device/device.hpp"

namespace lockstep {

// Recordings of Device::make_recording() call the work once, then record it without running it, then repeat the
// recorded calls. Everything else is `inner`'s.
std::unique_ptr<Device> make_repeating_device(std::unique_ptr<Device> inner);

}  // namespace lockstep
