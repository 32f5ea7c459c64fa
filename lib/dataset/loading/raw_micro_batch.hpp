// A micro-batch as a GPU takes it: pixels as they are stored, and how each sample is to be looked at. The GPU
// crops, mirrors, normalises and erases (device/cuda/passes/image_kernels.hpp).
#pragma once

#include <cstdint>
#include <span>

#include "dataset/loading/loader.hpp"
#include "device/cuda/passes/image_kernels.hpp"

namespace lockstep {

// Where the GPU finds pixels: a copy of the whole split in its own memory, or what travels with each micro-batch.
enum class PixelSource : std::uint8_t { resident, travelling };

// Memory for a micro-batch of n places.
//
//   views   [n]           which sample: of the split where it is resident, else of this micro-batch; -1 without one.
//   Where
//                         images are mixed of two: [2 n], those of the others behind them
//   shares  [n]           of the first of two; empty where images are not mixed
//   pixels  [n, h, w, c]  uint8, empty where the split is resident; of pictures that have other sizes the window. Where
//                         images are mixed: [n + outer_partners, h, w, c]
//   labels  [n]           likewise
struct RawMicroBatch {
  std::span<cuda::SampleAugmentation> views;
  std::span<float> shares;
  std::span<std::uint8_t> pixels;
  std::span<std::int32_t> labels;
  std::int64_t samples = 0;
};

// Neighbours of the first and the last place of a micro-batch may stand in another one.
constexpr std::int64_t outer_partners = 2;

void fill_raw_micro_batch(const LoaderSource& source, PixelSource pixels, std::int64_t micro_batch,
                          RawMicroBatch& memory);

// Samples [first, first + count) of a split whose pictures are all of one size, one after another: pixels [count, h, w,
// c].
void copy_pixels(const Dataset& dataset, std::int64_t first, std::int64_t count, std::uint8_t* pixels);

}  // namespace lockstep
