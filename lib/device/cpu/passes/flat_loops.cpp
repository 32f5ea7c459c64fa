#include "device/cpu/passes/flat_loops.hpp"

#include "device/cpu/threads/parallel.hpp"
#include "device/host_device.hpp"

namespace lockstep::cpu {

void widen(const std::uint16_t* bf16, std::int64_t count, float* values) {
  parallel_parts(loop_threads(), count, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) values[i] = from_bf16(bf16[i]);
  });
}

void narrow(const float* values, std::int64_t count, std::uint16_t* bf16) {
  parallel_parts(loop_threads(), count, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) bf16[i] = to_bf16(values[i]);
  });
}

void add_to(const float* values, std::int64_t count, float* sums) {
  parallel_parts(loop_threads(), count, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) sums[i] += values[i];
  });
}

}  // namespace lockstep::cpu
