// A micro-batch that a test has taken from a loader on the host.
#pragma once

#include <cstdint>
#include <vector>

#include "dataset/loading/loader.hpp"

namespace lockstep {

// A part, copied out of the loader's memory.
struct Part {
  std::vector<float> images;
  std::vector<std::int32_t> labels;
  std::int64_t samples = 0;
  bool operator==(const Part&) const = default;
};

inline Part take(Loader& loader) {
  const Batch& batch = loader.next();
  const float* const images = batch.images.as<float>();
  const std::int32_t* const labels = batch.labels.as<std::int32_t>();
  return {{images, images + batch.images.shape().count()}, {labels, labels + batch.labels.shape()[0]}, batch.samples};
}

}  // namespace lockstep
