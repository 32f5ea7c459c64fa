// Numbers with a comma after each three digits.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace lockstep {

// 1234567 as "1,234,567". `value` is not negative.
inline std::string grouped(std::int64_t value) {
  std::string digits = fmt::format("{}", value);
  for (auto at = static_cast<std::int64_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return digits;
}

}  // namespace lockstep
