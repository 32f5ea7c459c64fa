// How fast a training step could be if it were convolutions and nothing else: what whole steps are held against.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "device/device.hpp"

namespace lockstep {

// A convolution on size x size inputs, that a network has `times` times.
struct ConvLayer {
  Conv2d conv;
  std::int64_t size;
  int times = 1;
  bool reads_images = false;  // then nothing asks for its input's gradient
};

// The convolutions of resnet20, resnet18 or resnet50 (lib/models/resnet.cpp) on square pictures. Throws Error(usage)
// for any other name.
std::vector<ConvLayer> convolutions_of(std::string_view model, std::int64_t image_size);

// Of one layer, once, in seconds: the best of several rounds with the device's chosen kernels.
struct ConvSeconds {
  double forward;
  double backward_data;  // 0 where it reads images
  double backward_weight;

  double sum() const { return forward + backward_data + backward_weight; }
};
ConvSeconds measure(Device& device, const ConvLayer& layer, std::int64_t batch);

// Samples a second of this rank, if a step were its convolutions only.
double convolution_bound(Device& device, const std::vector<ConvLayer>& layers, std::int64_t batch);

}  // namespace lockstep
