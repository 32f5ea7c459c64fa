// Per-channel sums over rows (pixels), in two launches by blocks (launch/launch.hpp):
//   1. Each thread sums every count-th row of one channel group, and its block adds the sums of its threads:
//      [slice blocks][arrays][width] partial sums, of about 256 slice blocks.
//   2. Several threads add the partial sums of a channel, and one finishes it.
// The shape alone fixes all extents, so the result has the same bits every time.
#pragma once

#include <algorithm>

#include "device/cuda/cuda_context.hpp"
#include "device/cuda/launch/launch.hpp"
#include "device/cuda/layout/feature_map.hpp"
#include "device/ops.hpp"

namespace lockstep::cuda {

constexpr std::int64_t threads_adding =
    65536;  // a third of the threads that an H100 keeps resident; each has several loads in flight
constexpr std::int64_t elementwise_threads = 262144;  // as many as an H100 keeps resident at most
constexpr std::int64_t least_rows_elementwise = 4;    // per thread, which loads the values of its channels once
constexpr std::int64_t least_rows_adding = 8;         // per thread, so partial sums are few compared with the rows
constexpr int loads_at_once = 16;                     // that a thread which adds partial sums waits for together

// How rows are split among threads: index = slice * groups + group, so neighboring threads read neighboring vectors.
struct Slices {
  std::int64_t rows;    // pixels of all images
  std::int64_t groups;  // groups of eight channels
  std::int64_t count;

  LOCKSTEP_HOST_DEVICE std::int64_t threads() const { return count * groups; }
};

inline Slices slices_of(std::int64_t rows, std::int64_t groups, std::int64_t threads, std::int64_t least_rows) {
  const std::int64_t most = std::max<std::int64_t>((rows + least_rows - 1) / least_rows, 1);
  return {rows, groups, std::clamp<std::int64_t>(threads / groups, 1, most)};
}
inline Slices slices_for_sums(std::int64_t rows, std::int64_t groups) {
  return slices_of(rows, groups, threads_adding, least_rows_adding);
}
inline Slices slices_for_elementwise(std::int64_t rows, std::int64_t groups) {
  return slices_of(rows, groups, elementwise_threads, least_rows_elementwise);
}

// Vectors of `dtype` that a thread loads from an array before it uses the first one. A GPU's memory is busy only while
// each multiprocessor waits for tens of kilobytes.
template <DType dtype>
inline constexpr int rows_at_once = 64 / sizeof(StoredVector<dtype>);

// use(row, load(row)) for each row of a slice, in order. No load of a batch waits for what `use` stores.
template <int batch, typename Load, typename Use>
LOCKSTEP_HOST_DEVICE void for_rows(const Slices& slices, std::int64_t slice, const Load& load, const Use& use) {
  std::int64_t row = slice;
  for (; row + (batch - 1) * slices.count < slices.rows; row += batch * slices.count) {
    decltype(load(row)) loaded[batch];
    for (int i = 0; i < batch; ++i) loaded[i] = load(row + i * slices.count);
    for (int i = 0; i < batch; ++i) use(row + i * slices.count, loaded[i]);
  }
  for (; row < slices.rows; row += slices.count) use(row, load(row));
}

// `arrays` sums for each channel of a group.
template <int arrays_of, int width_of>
struct GroupSums {
  static constexpr int arrays = arrays_of;
  static constexpr int width = width_of;

  float at[arrays][width];
};

// Blocks of threads over slices x groups. Neighboring threads have neighboring groups, as in Slices.
struct SliceBlocks {
  explicit SliceBlocks(const Slices& walked)
      : groups(walked.groups),
        slices(walked.count),
        groups_at_once(static_cast<int>(std::min<std::int64_t>(groups, block_size))),
        slices_at_once(block_size / groups_at_once),
        columns((groups + groups_at_once - 1) / groups_at_once),
        rows((slices + slices_at_once - 1) / slices_at_once) {}

  std::int64_t count() const { return rows * columns; }

  std::int64_t groups, slices;
  int groups_at_once, slices_at_once;
  std::int64_t columns;  // blocks for all groups
  std::int64_t rows;     // blocks for all slices
};

// Stage 1. `walk(slice, group)` returns the GroupSums of a thread.
template <typename Walk>
struct SumInBlocks {
  using Part = typename Walk::Sums;

  Walk walk;
  SliceBlocks blocks;
  float* sums;  // [blocks.rows][arrays][groups * width]

  LOCKSTEP_HOST_DEVICE Part part(std::int64_t block, int thread) const {
    const Division place = divide(block, blocks.columns);
    const int row = thread / blocks.groups_at_once;
    const std::int64_t slice = place.quotient * blocks.slices_at_once + row;
    const std::int64_t group = place.remainder * blocks.groups_at_once + thread - row * blocks.groups_at_once;
    const bool is_idle = row >= blocks.slices_at_once || slice >= blocks.slices || group >= blocks.groups;
    return is_idle ? Part{} : walk(slice, group);
  }

  LOCKSTEP_HOST_DEVICE void finish(std::int64_t block, int thread, const Part* parts) const {
    const Division place = divide(block, blocks.columns);
    for (int i = thread; i < blocks.groups_at_once * Part::arrays * Part::width; i += block_size) {
      const int array = i / (blocks.groups_at_once * Part::width);
      const int channel = i - array * blocks.groups_at_once * Part::width;
      const std::int64_t group = place.remainder * blocks.groups_at_once + channel / Part::width;
      if (group >= blocks.groups) continue;
      float sum = 0;
      for (int row = 0; row < blocks.slices_at_once; ++row) {
        sum += parts[row * blocks.groups_at_once + channel / Part::width].at[array][channel % Part::width];
      }
      sums[((place.quotient * Part::arrays + array) * blocks.groups + group) * Part::width + channel % Part::width] =
          sum;
    }
  }
};

// values[0] + values[stride] + ..., `count` of them, in this order.
LOCKSTEP_HOST_DEVICE inline double strided_sum(const float* values, std::int64_t stride, std::int64_t count) {
  double sum = 0;
  for (std::int64_t first = 0; first < count; first += loads_at_once) {
    float loaded[loads_at_once];
    for (int i = 0; i < loads_at_once; ++i) loaded[i] = first + i < count ? values[(first + i) * stride] : 0;
    for (const float value : loaded) sum += static_cast<double>(value);
  }
  return sum;
}

// [count][arrays][width] of stage 1.
struct PartialSums {
  const float* data;
  std::int64_t width;
  std::int64_t count;
};

// Stage 2. `finish_channel(channel, totals)` gets Finish::arrays totals.
template <typename Finish>
struct FinishInBlocks {
  static constexpr int channels_at_once = 16;
  static constexpr int threads_per_channel = block_size / channels_at_once;

  struct Part {
    double at[Finish::arrays];
  };

  PartialSums sums;
  std::int64_t channels;
  Finish finish_channel;

  std::int64_t blocks() const { return (channels + channels_at_once - 1) / channels_at_once; }

  LOCKSTEP_HOST_DEVICE Part part(std::int64_t block, int thread) const {
    const std::int64_t channel = block * channels_at_once + thread % channels_at_once;
    const int first = thread / channels_at_once;
    Part part{};
    if (channel >= channels || first >= sums.count) return part;
    const std::int64_t count = (sums.count - first - 1) / threads_per_channel + 1;
    for (int array = 0; array < Finish::arrays; ++array) {
      const float* values = sums.data + (first * Finish::arrays + array) * sums.width + channel;
      part.at[array] = strided_sum(values, threads_per_channel * Finish::arrays * sums.width, count);
    }
    return part;
  }

  LOCKSTEP_HOST_DEVICE void finish(std::int64_t block, int thread, const Part* parts) const {
    const std::int64_t channel = block * channels_at_once + thread;
    if (thread >= channels_at_once || channel >= channels) return;
    Part totals{};
    for (int i = 0; i < threads_per_channel; ++i) {
      for (int array = 0; array < Finish::arrays; ++array) {
        totals.at[array] += parts[i * channels_at_once + thread].at[array];
      }
    }
    finish_channel(channel, totals.at);
  }
};

// Both stages. Finishes the first `channels`.
template <typename Launch, typename Walk, typename Finish>
void sum_channels(const CudaContext& context, const Launch& launch, const Walk& walk, std::int64_t channels,
                  const Finish& finish) {
  using Sums = typename Walk::Sums;
  static_assert(Sums::arrays == Finish::arrays);
  const SliceBlocks blocks(walk.slices);
  const std::int64_t width = blocks.groups * Sums::width;
  const Tensor sums = scratch(context, blocks.rows * Sums::arrays * width);
  launch.in_blocks(blocks.count(), SumInBlocks<Walk>{walk, blocks, sums.as<float>()});
  const FinishInBlocks<Finish> all{{sums.as<float>(), width, blocks.rows}, channels, finish};
  launch.in_blocks(all.blocks(), all);
}

LOCKSTEP_HOST_DEVICE inline void put(float* target, double value, Accumulate accumulate) {
  const auto rounded = static_cast<float>(value);
  *target = accumulate == Accumulate::add ? *target + rounded : rounded;
}

// target[channel] (+)= scale * total.
struct FinishSums {
  static constexpr int arrays = 1;

  double scale;
  float* target;
  Accumulate accumulate;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t channel, const double* totals) const {
    put(target + channel, scale * totals[0], accumulate);
  }
};

}  // namespace lockstep::cuda
