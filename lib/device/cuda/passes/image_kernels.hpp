// Builds a batch of input images from stored samples. The arithmetic is that of dataset/loading/augment.hpp.
#pragma once

#include "device/cuda/layout/feature_map.hpp"
#include "device/reflect.hpp"

namespace lockstep::cuda {

// Augmentation of one image in a batch: a window of sample `sample` that starts at (top, left), mirrored or not. Rows
// [erased_top, erased_bottom) x columns [erased_left, erased_right) of the image are zero.
struct SampleAugmentation {
  std::int32_t sample = -1;  // -1: none, the image is zero
  std::int32_t top = 0;
  std::int32_t left = 0;
  std::int32_t mirrored = 0;  // 0 or 1
  std::int32_t erased_top = 0;
  std::int32_t erased_bottom = 0;
  std::int32_t erased_left = 0;
  std::int32_t erased_right = 0;
  std::int32_t reflects = 0;  // 0: pixels outside the sample are 0; 1: reflected ones
};

// Samples in device memory.
//
//   pixels     [samples, h, w, c]  uint8
//   mean       [c]                 of pixel / 255; likewise deviation
//   labels     [samples]           i32
struct SampleStore {
  const std::uint8_t* pixels;
  const float* mean;
  const float* deviation;
  const std::int32_t* labels;
};

// images = (pixel / 255 - mean) / deviation. Pixels outside the sample are 0 or reflected. One thread per vector of
// `images`.
template <DType dtype>
struct MakeImages {
  SampleStore samples;
  const SampleAugmentation* views;  // [n]
  // Mixup: the other sample of each image, and the first one's share. Null without mixup.
  const SampleAugmentation* others;
  const float* shares;
  FeatureMap images;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const Place to = images.place_of(index);
    ChannelVector values = seen(views[to.image], to);
    if (shares != nullptr) {
      const float share = shares[to.image];
      const ChannelVector other = seen(others[to.image], to);
      for (int i = 0; i < vector_width; ++i) values.at[i] = share * values.at[i] + (1 - share) * other.at[i];
    }
    store<dtype>(values, images.data, index);
  }

  LOCKSTEP_HOST_DEVICE ChannelVector seen(const SampleAugmentation& view, const Place& to) const {
    ChannelVector values{};
    const bool is_erased = to.row >= view.erased_top && to.row < view.erased_bottom && to.column >= view.erased_left &&
                           to.column < view.erased_right;
    if (view.sample < 0 || is_erased) return values;
    std::int64_t row = to.row + view.top;
    std::int64_t column = (view.mirrored != 0 ? images.width - 1 - to.column : to.column) + view.left;
    if (view.reflects != 0) {
      row = reflected(row, images.height);
      column = reflected(column, images.width);
    }
    const bool is_inside = row >= 0 && row < images.height && column >= 0 && column < images.width;
    const std::int64_t pixel = (view.sample * images.height + row) * images.width + column;
    for (int i = 0; i < vector_width; ++i) {
      const std::int64_t channel = to.group * vector_width + i;
      if (channel >= images.channels) break;
      const std::uint8_t value = is_inside ? samples.pixels[pixel * images.channels + channel] : 0;
      values.at[i] = (static_cast<float>(value) / 255.0F - samples.mean[channel]) / samples.deviation[channel];
    }
    return values;
  }
};

// labels[i] = label of the sample of image i; -1 if there is none. One thread per image.
struct GatherLabels {
  SampleStore samples;
  const SampleAugmentation* views;
  std::int32_t* labels;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const std::int32_t sample = views[index].sample;
    labels[index] = sample >= 0 ? samples.labels[sample] : -1;
  }
};

// Copies the shares of a micro-batch to their place in a batch. One thread per image.
struct CopyShares {
  const float* from;
  float* to;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const { to[index] = from[index]; }
};

}  // namespace lockstep::cuda
