// What a GPU does beside arithmetic, which is another device's here: it repeats what it recorded, every call as it was
// asked, addresses and numbers alike, and it has a plan of the kernels it chose.
#pragma once

#include <cstdint>
#include <memory>

#include "device/device.hpp"

namespace lockstep {

// What becomes of recorded work: its calls are repeated, or, to compare with, it is called anew every time.
enum class Recordings : std::uint8_t { repeated, called };

// Recordings of Device::make_captured_graph() call the work once, then record it without running it, then repeat the
// recorded calls. Like a GPU it leaves no norm pending. Everything else is `inner`'s.
std::unique_ptr<Device> make_repeating_device(std::unique_ptr<Device> inner, Recordings graphs = Recordings::repeated);

}  // namespace lockstep
