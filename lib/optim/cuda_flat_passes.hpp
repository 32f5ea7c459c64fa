// The passes of device/cuda/passes/flat_kernels.hpp, queued on a stream.
#pragma once

#include "device/cuda/passes/flat_kernels.hpp"
#include "optim/fixed_point.hpp"
#include "optim/step_record.hpp"

struct CUstream_st;  // what cudaStream_t points to

namespace lockstep::cuda {

// Puts a value where a queued pass will read it. Run for one index.
struct SetValue {
  float value;
  float* slot;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t) const { *slot = value; }
};

// The decision on a step, and a copy of the tail it rests on. Run for one index.
struct JudgeStep {
  const float* tail;
  std::int64_t tail_count;
  std::int64_t loss;  // its place in the tail, and that of the number of overflows
  std::int64_t overflow;
  float* record;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t) const {
    record[step_verdict] = static_cast<float>(judge_step(record, tail[loss], tail[overflow]));
    for (std::int64_t i = 0; i < tail_count; ++i) record[step_tail + i] = tail[i];
  }
};

// sums = the fixed form of `values`, or sums += it. One thread an element.
struct SumFixed {
  const float* values;
  FixedPoint form;
  std::int64_t* sums;
  Accumulate accumulate;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const std::int64_t before = accumulate == Accumulate::add ? sums[index] : 0;
    sums[index] = before + form.fixed(values[index]);
  }
};

struct ValuesOfFixed {
  const std::int64_t* sums;
  float* values;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const { values[index] = FixedPoint::value(sums[index]); }
};

// Elements of scratch that counting takes: so many threads count, the next launch makes their sums sixteen times fewer.
inline constexpr std::int64_t counting_threads = 4096;
inline constexpr std::int64_t counting_scratch = counting_threads + counting_threads / lessening;

// Overwrites found[0] with how many of `values` are not smaller in size than `limit`, or adds it.
template <typename Launch>
void count_outside(const Launch& launch, const Tensor& values, float limit, const Tensor& scratch, const Tensor& found,
                   Accumulate accumulate) {
  constexpr std::int64_t fewer = counting_threads / lessening;
  float* const first = scratch.as<float>();
  float* const second = first + counting_threads;
  launch(counting_threads, CountOutside{values.as<float>(), values.shape().count(), limit, counting_threads, first});
  launch(fewer, Lessen{{first, 1, counting_threads}, second, fewer});
  launch(1, FinishSums{{second, 1, fewer}, 0, 1, found.as<float>(), accumulate});
}

// All pointers are the device's. Stream-ordered.
void queue_set_value(const SetValue& pass, CUstream_st* stream);
void queue_judge_step(const JudgeStep& pass, CUstream_st* stream);
void queue_sgd(const Sgd& pass, CUstream_st* stream);
void queue_average(const AverageInto& pass, std::int64_t count, CUstream_st* stream);
void queue_count_outside(const Tensor& values, float limit, const Tensor& scratch, const Tensor& found,
                         Accumulate accumulate, CUstream_st* stream);
void queue_sum_fixed(const SumFixed& pass, std::int64_t count, CUstream_st* stream);
void queue_values_of_fixed(const ValuesOfFixed& pass, std::int64_t count, CUstream_st* stream);

}  // namespace lockstep::cuda
