// A micro-batch as input for a GPU, which normalizes, erases and mixes (device/cuda/passes/image_kernels.hpp). Uploaded
// pixels are images, as AugmentedReader gives them. Of a resident split, whose pixels are as stored, the GPU also crops
// and mirrors.
#pragma once

#include <cstdint>
#include <span>

#include "dataset/loading/loader.hpp"
#include "device/cuda/passes/image_kernels.hpp"

namespace lockstep {

// Where the GPU finds pixels: in a resident copy of the whole split, or in each uploaded micro-batch.
enum class PixelSource : std::uint8_t { resident, travelling };

// Whether a GPU can make the images from stored pixels: these have one size, and are neither resampled nor recolored.
bool can_be_resident(const LoaderSource& source);

// Memory of a micro-batch of size n.
//
//   augmentations  [n]           what the GPU applies, and the index of the sample: in the split if it is resident,
//                                otherwise in this micro-batch; -1 without a sample. With mixup [2 n]: those of the
//                                partners follow
//   shares         [n]           with mixup, the weights of the first images; otherwise empty
//   pixels         [n, h, w, c]  uint8; empty if the split is resident. With mixup [n + outer_partners, h, w, c]
//   labels         [n]           with the same indices as pixels; empty if the split is resident
struct RawMicroBatch {
  std::span<cuda::SampleAugmentation> augmentations;
  std::span<float> shares;
  std::span<std::uint8_t> pixels;
  std::span<std::int32_t> labels;
  std::int64_t samples = 0;
};

// The partners of the first and the last sample can be in another micro-batch.
constexpr std::int64_t outer_partners = 2;

void fill_raw_micro_batch(const LoaderSource& source, PixelSource pixels, std::int64_t micro_batch,
                          RawMicroBatch& memory);

// Samples [first, first + count) of a split whose pictures all have the same size: contiguous pixels [count, h, w, c].
void copy_pixels(const Dataset& dataset, std::int64_t first, std::int64_t count, std::uint8_t* pixels);

}  // namespace lockstep
