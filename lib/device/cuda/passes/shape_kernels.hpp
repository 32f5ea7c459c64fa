// Kernels that move feature maps without arithmetic. One thread per vector of the map that is written.
#pragma once

#include "device/cuda/layout/feature_map.hpp"
#include "device/reflect.hpp"

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

// Shows x from (rows, columns) on, with reflected pixels beside it. One thread per vector of y.
template <DType dtype>
struct Shift {
  std::int64_t rows;
  std::int64_t columns;
  FeatureMap x;
  FeatureMap y;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const Place at = y.place_of(index);
    const std::int64_t row = reflected(at.row + rows, x.height);
    const std::int64_t column = reflected(at.column + columns, x.width);
    store<dtype>(load<dtype>(x.data, x.vector_at({at.image, row, column, at.group})), y.data, index);
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

// Copies `count` channels from `from_channel` on to `to_channel` on. In the first vector that is written, other
// channels are kept, if there are any before `to_channel`; elsewhere they become zero. One thread per vector that is
// written.
template <DType dtype>
struct CopyChannels {
  FeatureMap from;
  std::int64_t from_channel;
  FeatureMap to;
  std::int64_t to_channel;
  std::int64_t count;

  std::int64_t first_group = to_channel / vector_width;
  std::int64_t groups = (to_channel + count + vector_width - 1) / vector_width - first_group;
  // Channel c of `to` is channel c + shift of `from`.
  std::int64_t shift = from_channel - to_channel;

  std::int64_t threads() const { return to.rows() * groups; }

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const auto [row, group] = divide(index, groups);
    const std::int64_t vector = row * to.groups + first_group + group;
    const std::int64_t first = (first_group + group) * vector_width;
    ChannelVector values{};
    if (first < to_channel) values = load<dtype>(to.data, vector);
    // Aligned: all eight channels are in one vector of `from`.
    const std::int64_t source = row * from.groups * vector_width + first + shift;
    if (shift % vector_width == 0) {
      const ChannelVector copied = load<dtype>(from.data, source / vector_width);
      for (int i = 0; i < vector_width; ++i) values.at[i] = is_copied(first + i) ? copied.at[i] : values.at[i];
    } else {
      for (int i = 0; i < vector_width; ++i) {
        if (is_copied(first + i)) values.at[i] = load_element<dtype>(from.data, source + i);
      }
    }
    store<dtype>(values, to.data, vector);
  }

  LOCKSTEP_HOST_DEVICE bool is_copied(std::int64_t channel) const {
    return channel >= to_channel && channel < to_channel + count;
  }
};

}  // namespace lockstep::cuda
