// An upper bound for the speed of a training step: the time of its convolutions alone. Whole steps are compared with
// it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/device.hpp"

namespace lockstep {

// A convolution on size x size inputs that occurs `times` times in a network.
struct ConvLayer {
  Conv2d conv;
  std::int64_t size;
  int times = 1;
  bool reads_images = false;  // if so, its input needs no gradient
};

// The convolutions of a model for square pictures. Throws Error(usage) as model_graph().
std::vector<ConvLayer> convolutions_of(const std::string& model, std::int64_t image_size);

// Times of one layer in seconds: the minimum of several rounds with the kernels that the device selects.
struct ConvSeconds {
  double forward;
  double backward_data;  // 0 if it reads images
  double backward_weight;

  double sum() const { return forward + backward_data + backward_weight; }
};
ConvSeconds measure(Device& device, const ConvLayer& layer, std::int64_t batch);

// Samples per second of this rank if a step consisted of its convolutions only.
double convolution_bound(Device& device, const std::vector<ConvLayer>& layers, std::int64_t batch);

}  // namespace lockstep
