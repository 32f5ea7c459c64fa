// Kernels that move feature maps without arithmetic. One thread per vector of the map that is written.
#pragma once

#include "device/cuda/layout/feature_map.hpp"

namespace lockstep::cuda {

// y is plain [n, c*h*w] in PyTorch's order (channel, row, column). One thread per vector of x.
template <DType dtype>
struct Flatten {
  FeatureMap x;
  float* y;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const auto [row, group] = divide(index, x.groups);
    const auto [image, pixel] = divide(row, x.pixels());
    const ChannelVector values = load<dtype>(x.data, index);
    for (int i = 0; i < vector_width; ++i) {
      const std::int64_t channel = group * vector_width + i;
      if (channel < x.channels) y[(image * x.channels + channel) * x.pixels() + pixel] = values.at[i];
    }
  }
};

template <DType dtype>
struct Unflatten {
  const float* y;
  FeatureMap x;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const auto [row, group] = divide(index, x.groups);
    const auto [image, pixel] = divide(row, x.pixels());
    ChannelVector values;
    for (int i = 0; i < vector_width; ++i) {
      const std::int64_t channel = group * vector_width + i;
      values.at[i] = channel < x.channels ? y[(image * x.channels + channel) * x.pixels() + pixel] : 0;
    }
    store<dtype>(values, x.data, index);
  }
};

// Mirrors every row of pixels. One thread per vector of y.
template <DType dtype>
struct Mirror {
  FeatureMap x;
  FeatureMap y;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const Place at = y.place_of(index);
    store<dtype>(load<dtype>(x.data, x.vector_at({at.image, at.row, x.width - 1 - at.column, at.group})), y.data,
                 index);
  }
};

// Every stride-th pixel of x. Channels that x does not have are zero. One thread per vector of y.
template <DType dtype>
struct Subsample {
  std::int64_t stride;
  FeatureMap x;
  FeatureMap y;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const Place at = y.place_of(index);
    ChannelVector values{};
    if (at.group < x.groups) {
      values = load<dtype>(x.data, x.vector_at({at.image, at.row * stride, at.column * stride, at.group}));
    }
    store<dtype>(values, y.data, index);
  }
};

// Gradients of channels that x does not have are dropped, even in a vector shared with existing channels.
template <DType dtype>
struct SubsampleGradient {
  std::int64_t stride;
  FeatureMap dy;
  FeatureMap dx;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const Place at = dx.place_of(index);
    ChannelVector values{};
    if (at.row % stride == 0 && at.column % stride == 0) {
      values = load<dtype>(dy.data, dy.vector_at({at.image, at.row / stride, at.column / stride, at.group}));
    }
    for (int i = 0; i < vector_width; ++i) {
      values.at[i] = at.group * vector_width + i < dx.channels ? values.at[i] : 0;
    }
    store<dtype>(values, dx.data, index);
  }
};

// sum += other; arrays of equal length.
template <DType dtype>
struct AddInto {
  const std::byte* other;
  std::byte* sum;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const ChannelVector more = load<dtype>(other, index);
    ChannelVector values = load<dtype>(sum, index);
    for (int i = 0; i < vector_width; ++i) values.at[i] += more.at[i];
    store<dtype>(values, sum, index);
  }
};

}  // namespace lockstep::cuda
