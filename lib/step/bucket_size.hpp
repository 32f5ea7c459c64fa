// Chooses the bucket size: large enough that the latency of a sum is small compared with its transfer time.
#pragma once

#include <cstdint>

#include "comm/all_reducer.hpp"

namespace lockstep {

// Reducing b bytes takes latency_seconds + b / bytes_per_second.
struct ReductionCost {
  double latency_seconds;
  double bytes_per_second;
};

// Collective. Measures sums of `values`, which `reducer` allocated and which are zero. The result is the same on every
// rank.
ReductionCost measure_reduction(AllReducer& reducer, const Communicator& world, Device& device, const Tensor& values);

// The size at which latency is a tenth of a bucket's time, rounded to a power of two from 1 to 64 MiB. Larger buckets
// leave too little backward to overlap with.
std::int64_t choose_bucket_bytes(const ReductionCost& speed);

}  // namespace lockstep
