#include "slurm/retry/hold.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text/number.hpp"
#include "base/text/printable.hpp"

namespace lockstep {
namespace {

constexpr double day = 86400;
constexpr double longest = 30 * day;

// Numbers separated by colons; nullopt if there are more than `most`, or one is not a number.
std::optional<std::vector<double>> numbers_in(std::string_view text, std::size_t most) {
  std::vector<double> numbers;
  while (numbers.size() < most) {
    const std::size_t end = text.find(':');
    const auto number = parse_number<std::int64_t>(text.substr(0, end), {0, static_cast<std::int64_t>(longest)});
    if (!number) return std::nullopt;
    numbers.push_back(static_cast<double>(*number));
    if (end == std::string_view::npos) return numbers;
    text.remove_prefix(end + 1);
  }
  return std::nullopt;
}

// The first number counts `unit` seconds, and each of the others a sixtieth of the one before.
double sum_of(const std::vector<double>& numbers, double unit) {
  double seconds = 0;
  for (const double number : numbers) {
    seconds += number * unit;
    unit /= 60;
  }
  return seconds;
}

std::optional<double> parse_slurm_duration(std::string_view text) {
  constexpr double hour = 3600;
  constexpr double minute = 60;
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) {
    const auto numbers = numbers_in(text, 3);
    return numbers ? std::optional(sum_of(*numbers, numbers->size() == 3 ? hour : minute)) : std::nullopt;
  }
  const auto days = numbers_in(text.substr(0, dash), 1);
  const auto rest = numbers_in(text.substr(dash + 1), 3);
  return days && rest ? std::optional(days->front() * day + sum_of(*rest, hour)) : std::nullopt;
}

}  // namespace

double parse_hold(std::string_view text) {
  const std::optional<double> stated = parse_duration(text);
  const double seconds = (stated ? stated : parse_slurm_duration(text)).value_or(0);
  require(seconds >= 1 && seconds <= longest, Failure::usage,
          "'{}' (LOCKSTEP_HOLD_ON_FAILURE) is not a time from a second to 30 days. Write 90s, 30min, 2h, or a time as "
          "for Slurm's --time, such as 30 (minutes) or 1:30:00.",
          printable(text));
  return seconds;
}

bool is_worth_a_look(const Finding& finding) {
  constexpr std::array ended_by_others = {Cause::stopped_for_good, Cause::cancelled, Cause::time_limit,
                                          Cause::too_many_attempts};
  const bool failed = finding.kind == RetryKind::permanent || finding.kind == RetryKind::unknown;
  return failed && std::ranges::find(ended_by_others, finding.cause) == ended_by_others.end();
}

}  // namespace lockstep
