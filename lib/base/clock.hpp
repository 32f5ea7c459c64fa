// Time spans: measured on the monotonic clock, and in words for people.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

// Runs from its construction.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  double milliseconds() const { return seconds() * 1e3; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

// "0:07", "12:30", "1:02:03"; days are counted in hours. Rounded to the nearest second; never negative.
std::string format_duration(double seconds);

// Seconds in "90s", "10min" or "1.5h"; nothing if it is none of these, or not above zero.
std::optional<double> parse_duration(std::string_view text);

}  // namespace lockstep
