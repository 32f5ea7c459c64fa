// A micro-batch on the device, as a loader passes it to a step.
#pragma once

#include <cstdint>

#include "device/tensor.hpp"

namespace lockstep {

// Valid until the loader's next call.
//
//   images  [n, h, w, c]  Layout::images, of Device::image_dtype(), normalized, augmented when training
//   labels  [n]           i32; -1: no sample at this index (last batch of an evaluation)
//   others  [n]           i32; with mixup, the label of the other image; otherwise empty
//   shares  [n]           fp32; with mixup, the weight of the image's own sample; otherwise empty
struct Batch {
  Tensor images;
  Tensor labels;
  std::int64_t samples = 0;  // number of indices with a sample
  Tensor others = {};
  Tensor shares = {};
};

}  // namespace lockstep
