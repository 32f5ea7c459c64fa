// Per-channel sums over rows (pixels) without shared memory, atomics or waiting threads. Three stages:
//   1. Each thread sums every count-th row of one channel group: [count][width] partial sums.
//   2. Launches reduce them by a factor of 16 each, until at most 64 remain.
//   3. The kernel that needs a total adds the remaining partial sums.
// The shape alone fixes all extents, so the result has the same bits every time.
#pragma once

#include <algorithm>

#include "device/cuda/cuda_context.hpp"
#include "device/cuda/layout/feature_map.hpp"
#include "device/ops.hpp"

namespace lockstep::cuda {

constexpr std::int64_t threads_adding =
    65536;  // a third of the threads that an H100 keeps resident; each has several loads in flight
constexpr std::int64_t elementwise_threads = 262144;  // all threads that an H100 keeps resident
constexpr std::int64_t least_rows_adding = 8;         // per thread, so partial sums are few compared with the rows
constexpr std::int64_t max_partial_sums = 64;         // that one thread adds at the end
constexpr std::int64_t reduction_factor = 16;         // reduction factor of a launch

// How rows are split among threads: index = slice * groups + group, so neighboring threads read neighboring vectors.
struct Slices {
  std::int64_t rows;    // pixels of all images
  std::int64_t groups;  // groups of eight channels
  std::int64_t count;

  LOCKSTEP_HOST_DEVICE std::int64_t threads() const { return count * groups; }
};

inline Slices slices_for_sums(std::int64_t rows, std::int64_t groups) {
  const std::int64_t most = std::max<std::int64_t>((rows + least_rows_adding - 1) / least_rows_adding, 1);
  return {rows, groups, std::clamp<std::int64_t>(threads_adding / groups, 1, most)};
}
inline Slices slices_for_elementwise(std::int64_t rows, std::int64_t groups) {
  return {rows, groups, std::clamp<std::int64_t>(elementwise_threads / groups, 1, std::max<std::int64_t>(rows, 1))};
}

// Partial sums [count][width], fp32.
struct PartialSums {
  const float* data;
  std::int64_t width;
  std::int64_t count;

  LOCKSTEP_HOST_DEVICE double total(std::int64_t column) const {
    double sum = 0;
    for (std::int64_t slice = 0; slice < count; ++slice) sum += static_cast<double>(data[slice * width + column]);
    return sum;
  }
};

struct ReducePartials {
  PartialSums from;
  float* to;  // [count][width]
  std::int64_t count;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const auto [slice, column] = divide(index, from.width);
    float sum = 0;
    for (int i = 0; i < reduction_factor; ++i) {
      const std::int64_t source = slice + i * count;
      if (source < from.count) sum += from.data[source * from.width + column];
    }
    to[index] = sum;
  }
};

// Memory for partial sums, and their reduction to at most max_partial_sums.
class SumMemory {
 public:
  SumMemory(const CudaContext& context, std::int64_t count, std::int64_t width)
      : context_(context), count_(count), width_(width), memory_(scratch(context, count * width)) {}

  float* data() const { return memory_.as<float>(); }

  // Call once all partial sums are written. The result is valid while this object lives.
  template <typename Launch>
  PartialSums reduced(const Launch& launch) {
    while (count_ > max_partial_sums) {
      const std::int64_t fewer = (count_ + reduction_factor - 1) / reduction_factor;
      const Tensor sums = scratch(context_, fewer * width_);
      launch(fewer * width_, ReducePartials{{data(), width_, count_}, sums.as<float>(), fewer});
      memory_ = sums;
      count_ = fewer;
    }
    return {data(), width_, count_};
  }

 private:
  const CudaContext& context_;
  std::int64_t count_;
  std::int64_t width_;
  Tensor memory_;
};

LOCKSTEP_HOST_DEVICE inline void put(float* target, double value, Accumulate accumulate) {
  const auto rounded = static_cast<float>(value);
  *target = accumulate == Accumulate::add ? *target + rounded : rounded;
}

// target[i] (+)= scale * total of column first + i.
struct FinishSums {
  PartialSums sums;
  std::int64_t first;
  double scale;
  float* target;
  Accumulate accumulate;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    put(target + index, scale * sums.total(first + index), accumulate);
  }
};

}  // namespace lockstep::cuda
