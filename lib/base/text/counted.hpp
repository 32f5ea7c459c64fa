// A count with its noun.
#pragma once

#include <fmt/core.h>

#include <concepts>
#include <string>
#include <string_view>

namespace lockstep {

// "1 class", "2 classes", "0 classes" for ("class", "classes"). Without `many` the plural is `one` with an s.
std::string counted(std::integral auto count, std::string_view one, std::string_view many = "") {
  if (count == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", count, one) : fmt::format("{} {}", count, many);
}

}  // namespace lockstep
