// Bias and activation, and their gradients. Each thread handles one group of eight channels and walks over rows; plain
// [n, c] tensors are processed element by element.
#pragma once

#include "device/cuda/norm/channel_sums.hpp"

namespace lockstep::cuda {

LOCKSTEP_HOST_DEVICE inline float activate(Activation activation, float value) {
  return activation == Activation::relu && value < 0 ? 0 : value;  // NaN stays NaN
}
LOCKSTEP_HOST_DEVICE inline float through(Activation activation, float y, float dy) {
  return activation == Activation::relu && y <= 0 ? 0 : dy;
}

// y may be x.
template <DType dtype>
struct AddBias {
  Slices slices;
  const std::byte* x;
  const float* bias;
  std::int64_t channels;
  Activation activation;
  std::byte* y;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const auto [slice, group] = divide(index, slices.groups);
    const ChannelVector offsets = load_channels(bias, group, channels);
    for (std::int64_t row = slice; row < slices.rows; row += slices.count) {
      const std::int64_t vector = row * slices.groups + group;
      ChannelVector values = load<dtype>(x, vector);
      for (int i = 0; i < vector_width; ++i) values.at[i] = activate(activation, values.at[i] + offsets.at[i]);
      store<dtype>(values, y, vector);
    }
  }
};

// Partial sums of dx, which is dy with the ReLU mask applied and is written too. dx may be dy.
template <DType dtype>
struct SumBiasGradients {
  using Sums = GroupSums<1, vector_width>;

  Slices slices;
  const std::byte* y;  // read only with a ReLU
  const std::byte* dy;
  Activation activation;
  std::byte* dx;

  LOCKSTEP_HOST_DEVICE Sums operator()(std::int64_t slice, std::int64_t group) const {
    Sums sums{};
    for (std::int64_t row = slice; row < slices.rows; row += slices.count) {
      const std::int64_t vector = row * slices.groups + group;
      ChannelVector gradients = load<dtype>(dy, vector);
      if (activation == Activation::relu) {
        const ChannelVector outputs = load<dtype>(y, vector);
        for (int i = 0; i < vector_width; ++i) {
          gradients.at[i] = through(activation, outputs.at[i], gradients.at[i]);
        }
      }
      store<dtype>(gradients, dx, vector);
      for (int i = 0; i < vector_width; ++i) sums.at[0][i] += gradients.at[i];
    }
    return sums;
  }
};

struct AddPlainBias {
  const float* x;
  const float* bias;
  std::int64_t channels;
  Activation activation;
  float* y;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    y[index] = activate(activation, x[index] + bias[divide(index, channels).remainder]);
  }
};

// Like SumBiasGradients, with one channel per group.
struct SumPlainBiasGradients {
  using Sums = GroupSums<1, 1>;

  Slices slices;
  const float* y;
  const float* dy;
  Activation activation;
  float* dx;

  LOCKSTEP_HOST_DEVICE Sums operator()(std::int64_t slice, std::int64_t channel) const {
    Sums sums{};
    for (std::int64_t row = slice; row < slices.rows; row += slices.count) {
      const std::int64_t at = row * slices.groups + channel;
      const float gradient = activation == Activation::relu ? through(activation, y[at], dy[at]) : dy[at];
      dx[at] = gradient;
      sums.at[0][0] += gradient;
    }
    return sums;
  }
};

}  // namespace lockstep::cuda
