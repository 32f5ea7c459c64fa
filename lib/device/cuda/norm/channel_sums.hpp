// Per-channel sums over rows (pixels) without shared memory, atomics or waiting threads. Three stages:
//   1. Each thread sums every count-th row of one channel group: [count][width] partial sums.
//   2. Launches reduce them, by a factor of at most 128 each, until at most 64 remain.
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
constexpr std::int64_t elementwise_threads = 262144;  // as many as an H100 keeps resident at most
constexpr std::int64_t least_rows_elementwise = 4;    // per thread, which loads the values of its channels once
constexpr std::int64_t least_rows_adding = 8;         // per thread, so partial sums are few compared with the rows
constexpr std::int64_t max_partial_sums = 64;         // that one thread adds at the end
constexpr std::int64_t max_reduction = 128;           // of a launch
constexpr int loads_at_once = 32;                     // that a thread which adds partial sums waits for together

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

// values[first] + values[first + stride] + ... below `end`, in this order.
template <typename Sum>
LOCKSTEP_HOST_DEVICE Sum strided_sum(const float* values, std::int64_t first, std::int64_t stride, std::int64_t end) {
  Sum sum = 0;
  for (std::int64_t at = first; at < end; at += loads_at_once * stride) {
    float loaded[loads_at_once];
    for (int i = 0; i < loads_at_once; ++i) loaded[i] = at + i * stride < end ? values[at + i * stride] : 0;
    for (const float value : loaded) sum += static_cast<Sum>(value);
  }
  return sum;
}

// Partial sums [count][width], fp32.
struct PartialSums {
  const float* data;
  std::int64_t width;
  std::int64_t count;

  LOCKSTEP_HOST_DEVICE double total(std::int64_t column) const {
    return strided_sum<double>(data, column, width, count * width);
  }
};

// Adds every count-th partial sum.
struct ReducePartials {
  PartialSums from;
  float* to;  // [count][width]
  std::int64_t count;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    to[index] = strided_sum<float>(from.data, index, count * from.width, from.count * from.width);
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
      const std::int64_t fewer = std::max(max_partial_sums, (count_ + max_reduction - 1) / max_reduction);
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
