#include "optim/flat_sums.hpp"

#include <atomic>
#include <bit>
#include <cassert>

#include "device/cpu/threads/parallel.hpp"

namespace lockstep {

std::int64_t count_outside(std::span<const float> values, float limit) {
  constexpr std::uint32_t all_but_sign = 0x7fffffff;  // as whole numbers, sizes and NaNs are in the order of sizes
  const auto count = static_cast<std::int64_t>(values.size());
  const auto bound = std::bit_cast<std::uint32_t>(limit);
  const float* const v = values.data();
  std::atomic<std::int64_t> found = 0;
  cpu::parallel_parts(cpu::loop_threads(), count, [v, bound, &found](std::int64_t first, std::int64_t last) {
    std::int64_t found_here = 0;
    for (std::int64_t i = first; i < last; ++i) {
      found_here += (std::bit_cast<std::uint32_t>(v[i]) & all_but_sign) >= bound ? 1 : 0;
    }
    found += found_here;
  });
  return found;
}

void sum_fixed(std::span<const float> values, const FixedPoint& form, std::span<std::int64_t> sums,
               Accumulate accumulate) {
  assert(sums.size() == values.size());
  const auto count = static_cast<std::int64_t>(values.size());
  const std::int64_t keep = accumulate == Accumulate::add ? -1 : 0;  // a mask: one loop serves both
  const float* const v = values.data();
  std::int64_t* const s = sums.data();
  cpu::parallel_parts(cpu::loop_threads(), count, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) s[i] = (s[i] & keep) + form.fixed(v[i]);
  });
}

void values_of_fixed(std::span<const std::int64_t> sums, std::span<float> values) {
  assert(sums.size() == values.size());
  const auto count = static_cast<std::int64_t>(values.size());
  const std::int64_t* const s = sums.data();
  float* const v = values.data();
  cpu::parallel_parts(cpu::loop_threads(), count, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) v[i] = FixedPoint::value(s[i]);
  });
}

}  // namespace lockstep
