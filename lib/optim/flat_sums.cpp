#include "optim/flat_sums.hpp"

#include <bit>
#include <cassert>

namespace lockstep {

std::int64_t count_outside(std::span<const float> values, float limit) {
  constexpr std::uint32_t all_but_sign = 0x7fffffff;  // as whole numbers, sizes and NaNs are in the order of sizes
  const auto count = static_cast<std::int64_t>(values.size());
  const auto bound = std::bit_cast<std::uint32_t>(limit);
  const float* const v = values.data();
  std::int64_t found = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : found)
  for (std::int64_t i = 0; i < count; ++i)
    found += (std::bit_cast<std::uint32_t>(v[i]) & all_but_sign) >= bound ? 1 : 0;
  return found;
}

void sum_fixed(std::span<const float> values, const FixedPoint& form, std::span<std::int64_t> sums,
               Accumulate accumulate) {
  assert(sums.size() == values.size());
  const auto count = static_cast<std::int64_t>(values.size());
  const std::int64_t keep = accumulate == Accumulate::add ? -1 : 0;  // a mask: one loop serves both
  const float* const v = values.data();
  std::int64_t* const s = sums.data();
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < count; ++i) s[i] = (s[i] & keep) + form.fixed(v[i]);
}

void values_of_fixed(std::span<const std::int64_t> sums, std::span<float> values) {
  assert(sums.size() == values.size());
  const auto count = static_cast<std::int64_t>(values.size());
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < count; ++i)
    values[static_cast<std::size_t>(i)] = FixedPoint::value(sums[static_cast<std::size_t>(i)]);
}

}  // namespace lockstep
