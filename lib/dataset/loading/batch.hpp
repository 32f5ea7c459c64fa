// What a loader hands to a step: one micro-batch of a global batch, ready on the device.
#pragma once

#include <cstdint>

#include "device/tensor.hpp"

namespace lockstep {

// Valid until the loader's next call.
//
//   images  [n, h, w, c]  Layout::images, of Device::image_dtype(), normalised, augmented when training
//   labels  [n]           i32; -1 marks a place without a sample (last batch of an evaluation)
//   others  [n]           i32; where each image is mixed of two: the label of the other one. Else empty
//   shares  [n]           fp32; likewise: what the image holds of its own sample
struct Batch {
  Tensor images;
  Tensor labels;
  std::int64_t samples = 0;  // places with a sample
  Tensor others = {};
  Tensor shares = {};
};

}  // namespace lockstep
