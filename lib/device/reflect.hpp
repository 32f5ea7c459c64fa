// Reflection padding: the pixel that is shown beside the edge of an image.
#pragma once

#include <cstdint>

#include "device/host_device.hpp"

namespace lockstep {

// The index within [0, count) of the pixel shown at `index`, which is from 1 - count to 2 * count - 2. Equivalent to
// PyTorch's padding mode "reflect": the pixel at the edge is not repeated.
LOCKSTEP_HOST_DEVICE inline std::int64_t reflected(std::int64_t index, std::int64_t count) {
  if (index < 0) return -index;
  return index < count ? index : 2 * (count - 1) - index;
}

}  // namespace lockstep
