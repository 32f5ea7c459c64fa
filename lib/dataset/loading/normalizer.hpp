// Normalizes images, in the planar layout that a network reads.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

// (pixel / 255 - mean) / deviation per channel, with each operation rounded to fp32 (torchvision: ToTensor, Normalize).
class Normalizer {
 public:
  // One value per channel, in units of pixel / 255.
  Normalizer(std::span<const float> mean, std::span<const float> deviation);

  // Pixels [h, w, c] become the image [c, h, w].
  void write(std::span<const std::uint8_t> pixels, std::span<float> image) const;

 private:
  class Channel {
   public:
    Channel(float mean, float deviation);
    void write(const std::uint8_t* pixels, std::int64_t count, float* values) const;

   private:
    std::array<float, 256> table_;  // result for each pixel value
    float mean_;
    float deviation_;
    // Whether vectorized multiplication reproduces every value of the table and is supported here. A table look-up per
    // pixel is three times slower.
    bool is_computed_;
  };
  std::vector<Channel> channels_;
};

}  // namespace lockstep
