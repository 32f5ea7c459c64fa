// Shape of a data set's samples, shared by models and loaders.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

struct SampleShape {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;
  bool operator==(const SampleShape&) const = default;
};

}  // namespace lockstep
