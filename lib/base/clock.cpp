#include "base/clock.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <utility>

#include "base/text/number.hpp"

namespace lockstep {

std::string format_duration(double seconds) {
  // A rate of zero gives an infinite duration, shown as a hundred thousand hours.
  constexpr double longest = 3.6e8;
  const double bounded = std::isnan(seconds) ? longest : std::clamp(seconds, 0.0, longest);
  const long long whole = std::llround(bounded);
  const long long hours = whole / 3600;
  const long long minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

std::optional<double> parse_duration(std::string_view text) {
  for (const auto& [unit, unit_seconds] : {std::pair("min", 60.0), std::pair("h", 3600.0), std::pair("s", 1.0)}) {
    if (!text.ends_with(unit)) continue;
    text.remove_suffix(std::string_view(unit).size());
    constexpr double largest_seconds = 1e9;
    const NumberRange<double> range{0, largest_seconds / unit_seconds, LeastIs::excluded};
    const std::optional<double> count = parse_number(text, range);
    return count ? std::optional(*count * unit_seconds) : std::nullopt;
  }
  return std::nullopt;
}

std::string utc_text(std::int64_t time) { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(time)); }

std::string utc_time() { return utc_text(std::time(nullptr)); }

std::optional<std::int64_t> parse_utc_time(const std::string& text) {
  std::tm fields{};
  if (::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &fields) == nullptr) return std::nullopt;
  const std::int64_t time = ::timegm(&fields);
  return utc_text(time) == text ? std::optional(time) : std::nullopt;
}

}  // namespace lockstep
