// Values that two languages agree on without a file: the C++ side of counter_uniform() in tests/golden/make_golden.py.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::test {

// splitmix64 of (stream, element) as fp32 in [-1, 1).
inline std::vector<float> counter_uniform(std::uint64_t stream, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint64_t z = (i + (stream << 32) + 1) * 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    z = z ^ (z >> 31);
    values[i] = static_cast<float>(static_cast<double>(z >> 40) * 0x1p-23 - 1.0);
  }
  return values;
}

}  // namespace lockstep::test
