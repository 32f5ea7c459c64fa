#include "step/bucket_size.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/clock.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t mebibyte = 1 << 20;

// The minimum of a few rounds, because disturbances only add time. The maximum over ranks.
double sum_seconds(AllReducer& reducer, const Communicator& world, Device& device, const Tensor& slice) {
  constexpr int rounds = 7;
  double fastest = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    world.barrier();
    const Stopwatch watch;
    reducer.start_sum(slice);
    reducer.wait();
    device.synchronize();
    fastest = std::min(fastest, world.max(watch.seconds()));
  }
  return fastest;
}

}  // namespace

ReductionCost measure_reduction(AllReducer& reducer, const Communicator& world, Device& device, const Tensor& values) {
  constexpr std::int64_t small_count = 4096;
  constexpr std::int64_t large_count = 4 * mebibyte;
  const std::int64_t small = std::min(small_count, values.shape()[0]);
  const std::int64_t large = std::min(large_count, values.shape()[0]);
  const double small_seconds = sum_seconds(reducer, world, device, values.slice(0, small));
  const double large_seconds = sum_seconds(reducer, world, device, values.slice(0, large));
  const auto more_bytes = static_cast<double>((large - small) * size_of(values.dtype()));
  // A network smaller than the small slice has one bucket anyway.
  const double seconds_a_byte = more_bytes > 0 ? std::max(large_seconds - small_seconds, 0.0) / more_bytes : 0.0;
  const double latency = small_seconds - static_cast<double>(small * size_of(values.dtype())) * seconds_a_byte;
  return {std::max(latency, 0.0), seconds_a_byte > 0 ? 1 / seconds_a_byte : std::numeric_limits<double>::infinity()};
}

std::int64_t choose_bucket_bytes(const ReductionCost& speed) {
  constexpr double largest = 64 * mebibyte;
  if (!(speed.bytes_per_second < std::numeric_limits<double>::infinity())) return mebibyte;  // too small to measure
  const double wanted = std::clamp(9 * speed.latency_seconds * speed.bytes_per_second, double{mebibyte}, largest);
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(wanted)));
}

}  // namespace lockstep
