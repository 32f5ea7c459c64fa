#include "recipe/size_ramp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "base/text/number.hpp"

namespace lockstep {
namespace {

constexpr NumberRange<std::int64_t> pixels{8, 4096};
constexpr NumberRange<std::int64_t> epochs{0, 1000000};
constexpr NumberRange<std::int64_t> multiples{1, 4096};
constexpr std::array ranges{pixels, epochs, epochs, multiples};

// Rounds half to even.
std::int64_t nearest(std::int64_t dividend, std::int64_t divisor) {
  const std::int64_t below = dividend / divisor;
  const std::int64_t twice = 2 * (dividend % divisor);
  return below + (twice > divisor || (twice == divisor && below % 2 == 1) ? 1 : 0);
}

}  // namespace

std::int64_t side_in_epoch(const SizeRamp& ramp, std::int64_t full, std::int64_t epoch) {
  assert(ramp.from <= full);
  if (epoch <= ramp.start) return ramp.from;
  if (epoch >= ramp.end) return full;
  const std::int64_t length = ramp.end - ramp.start;
  const std::int64_t line = ramp.from * length + (full - ramp.from) * (epoch - ramp.start);
  return std::clamp(nearest(line, length * ramp.multiple) * ramp.multiple, ramp.from, full);
}

std::optional<SizeRamp> parse_size_ramp(std::string_view text) {
  SizeRamp ramp;
  const std::array numbers{&ramp.from, &ramp.start, &ramp.end, &ramp.multiple};
  std::size_t count = 0;
  for (bool has_more = true; has_more; ++count) {
    if (count == numbers.size()) return std::nullopt;
    const std::size_t colon = text.find(':');
    const std::optional<std::int64_t> number = parse_number(text.substr(0, colon), ranges.at(count));
    if (!number) return std::nullopt;
    *numbers.at(count) = *number;
    has_more = colon != std::string_view::npos;
    if (has_more) text.remove_prefix(colon + 1);
  }
  const bool is_whole = count + 1 >= numbers.size();
  return is_whole && ramp.start <= ramp.end ? std::optional(ramp) : std::nullopt;
}

std::string size_ramp_text(const SizeRamp& ramp) {
  const std::string text = fmt::format("{}:{}:{}", ramp.from, ramp.start, ramp.end);
  return ramp.multiple == SizeRamp().multiple ? text : fmt::format("{}:{}", text, ramp.multiple);
}

}  // namespace lockstep
