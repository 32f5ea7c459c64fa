// How large a bucket of gradients must be so that starting its sum costs little beside the sum itself.
#pragma once

#include <cstdint>

#include "comm/all_reducer.hpp"

namespace lockstep {

// The sum of b bytes takes latency_seconds + b / bytes_per_second.
struct SumSpeed {
  double latency_seconds;
  double bytes_per_second;
};

// Collective. Measured on sums of `values`, which `reducer` allocated and which are zero; the same on every rank.
SumSpeed measure_sums(AllReducer& reducer, const Communicator& world, Device& device, const Tensor& values);

// Such that the latency is a tenth of a bucket's time, in powers of two from 1 to 64 MiB: larger ones leave too little
// for backward to hide.
std::int64_t choose_bucket_bytes(const SumSpeed& speed);

}  // namespace lockstep
