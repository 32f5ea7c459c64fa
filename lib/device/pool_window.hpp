// Windows of a pooling: counted_positions, first_window_over, last_window_over.
#pragma once

#include <cstdint>

#include "device/host_device.hpp"
#include "device/ops.hpp"

namespace lockstep {
#include "device/pool_window.inl"
}  // namespace lockstep
