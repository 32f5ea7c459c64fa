#include "base/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lockstep {

std::string duration_words(double seconds) {
  // A rate of zero gives infinity; a hundred thousand hours stand for it.
  constexpr double longest = 3.6e8;
  const double bounded = std::isnan(seconds) ? longest : std::clamp(seconds, 0.0, longest);
  const long long whole = std::llround(bounded);
  const long long hours = whole / 3600;
  const long long minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

}  // namespace lockstep
