// Durations: a stopwatch on the monotonic clock. Durations and times of the calendar from and to text.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

// Starts when it is constructed.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  double milliseconds() const { return seconds() * 1e3; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

// "0:07", "12:30", "1:02:03"; there is no unit above hours. Rounded to the nearest second; never negative.
std::string format_duration(double seconds);

// The seconds in "90s", "10min" or "1.5h". Nothing if the text has none of these forms, or is not above zero.
std::optional<double> parse_duration(std::string_view text);

// A time in seconds since 1970 as UTC: "2026-11-22T07:20:00Z".
std::string utc_text(std::int64_t time);
// The current time in UTC.
std::string utc_time();
// The inverse of utc_text(). Nothing if the text does not have exactly this form.
std::optional<std::int64_t> parse_utc_time(const std::string& text);

}  // namespace lockstep
