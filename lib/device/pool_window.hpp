// Windows of a pooling: counted_positions.
#pragma once

#include <cstdint>

#include "device/host_device.hpp"
#include "device/ops.hpp"

namespace lockstep {
#include "device/pool_window.inl"
}  // namespace lockstep
