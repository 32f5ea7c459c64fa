// Elementwise functions: curve_value and curve_derivative.
#pragma once

#include <math.h>

#include <cstdint>

#include "device/host_device.hpp"
#include "device/ops.hpp"

namespace lockstep {
#include "device/curve.inl"
}  // namespace lockstep
