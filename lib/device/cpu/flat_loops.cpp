#include "device/cpu/flat_loops.hpp"

#include "device/host_device.hpp"

namespace lockstep::cpu {

void widen(const std::uint16_t* bf16, std::int64_t count, float* values) {
#pragma omp parallel for simd schedule(static)
  for (std::int64_t i = 0; i < count; ++i) values[i] = from_bf16(bf16[i]);
}

void narrow(const float* values, std::int64_t count, std::uint16_t* bf16) {
#pragma omp parallel for simd schedule(static)
  for (std::int64_t i = 0; i < count; ++i) bf16[i] = to_bf16(values[i]);
}

void add_to(const float* values, std::int64_t count, float* sums) {
#pragma omp parallel for simd schedule(static)
  for (std::int64_t i = 0; i < count; ++i) sums[i] += values[i];
}

}  // namespace lockstep::cpu
