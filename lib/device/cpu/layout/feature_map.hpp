// A feature map as stored on the CPU: n, ceil(c/B), h, w, B.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "device/cpu/layout/cpu_layout.hpp"
#include "device/cpu/passes/vector_loops.hpp"
#include "device/tensor.hpp"

namespace lockstep::cpu {

struct FeatureMap {
  FeatureMap(const Tensor& tensor, std::int64_t lanes_per_block)
      : images(tensor.shape()[0]),
        height(tensor.shape()[1]),
        width(tensor.shape()[2]),
        channels(tensor.shape()[3]),
        lanes(lanes_per_block),
        data(tensor.data()),
        element_bytes(size_of(tensor.dtype())) {
    assert(tensor.layout() == Layout::features && tensor.shape().ndim == 4);
  }

  std::int64_t blocks() const { return ceil_div(channels, lanes); }
  std::int64_t pixels() const { return height * width; }
  std::int64_t vectors() const { return images * blocks() * pixels(); }
  std::int64_t bytes() const { return vectors() * lanes * element_bytes; }
  std::int64_t plane_bytes() const { return pixels() * lanes * element_bytes; }
  // Channels of `block` without padding.
  std::int64_t channels_in(std::int64_t block) const { return std::min(lanes, channels - block * lanes); }

  std::byte* plane(std::int64_t image, std::int64_t block) const {
    return data + (image * blocks() + block) * plane_bytes();
  }
  Planes planes(std::int64_t count) const { return {count, pixels(), blocks() * pixels() * lanes}; }

  std::int64_t images, height, width, channels;
  std::int64_t lanes;
  std::byte* data;
  std::int64_t element_bytes;
};

// A feature map split into pieces for threads. Each piece is one channel block of a few consecutive images.
struct ImagePieces {
  // 2,048 pixels are 64 to 128 KiB: much more work than the cost of handing out a piece, and small enough for many
  // threads.
  static constexpr std::int64_t pixels_wanted = 2048;

  explicit ImagePieces(const FeatureMap& map)
      : images_each(std::clamp<std::int64_t>(pixels_wanted / std::max<std::int64_t>(map.pixels(), 1), 1, map.images)),
        count(ceil_div(map.images, images_each)),
        images(map.images) {}

  std::int64_t first_image(std::int64_t piece) const { return piece * images_each; }
  std::int64_t images_in(std::int64_t piece) const { return std::min(images_each, images - first_image(piece)); }

  std::int64_t images_each;
  std::int64_t count;
  std::int64_t images;
};

}  // namespace lockstep::cpu
