#include "base/text/number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

namespace lockstep {
namespace {

// `digits` x 10^`exponent`, without leading or trailing zeros. No digits mean 0.
struct Decimal {
  bool negative = false;
  std::string digits;
  std::int64_t exponent = 0;
};

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

std::string_view take_digits(std::string_view& text) {
  const std::string_view digits = text.substr(0, std::min(text.size(), text.find_first_not_of("0123456789")));
  text.remove_prefix(digits.size());
  return digits;
}

// The number after an `e`, clamped: beyond the bound every type overflows or underflows to 0.
std::optional<std::int64_t> take_exponent(std::string_view& text) {
  constexpr std::int64_t bound = 1'000'000'000;
  const bool negative = text.starts_with('-');
  take(text, "+-");
  const std::string_view digits = take_digits(text);
  if (digits.empty()) return std::nullopt;
  std::int64_t exponent = 0;
  for (const char digit : digits) exponent = std::min(bound, exponent * 10 + (digit - '0'));
  return negative ? -exponent : exponent;
}

std::optional<Decimal> parse_decimal(std::string_view text) {
  Decimal decimal;
  decimal.negative = take(text, "-");
  decimal.digits = take_digits(text);
  if (take(text, ".")) {
    const std::string_view decimals = take_digits(text);
    decimal.digits += decimals;
    decimal.exponent = -static_cast<std::int64_t>(decimals.size());
  }
  if (decimal.digits.empty()) return std::nullopt;
  if (take(text, "eE")) {
    const std::optional<std::int64_t> exponent = take_exponent(text);
    if (!exponent) return std::nullopt;
    decimal.exponent += *exponent;
  }
  if (!text.empty()) return std::nullopt;
  decimal.digits.erase(0, std::min(decimal.digits.size(), decimal.digits.find_first_not_of('0')));
  for (; decimal.digits.ends_with('0'); decimal.digits.pop_back()) ++decimal.exponent;
  return decimal;
}

// Exact: integers are not converted through floating point.
template <typename Number>
std::optional<Number> whole_number(const Decimal& decimal) {
  constexpr std::int64_t max_digits = 20;
  if (decimal.digits.empty()) return Number{0};
  const bool fits = decimal.exponent >= 0 && decimal.exponent <= max_digits;
  if (!fits) return std::nullopt;
  const std::string text =
      (decimal.negative ? "-" : "") + decimal.digits + std::string(static_cast<std::size_t>(decimal.exponent), '0');
  Number number = 0;
  // careful-number: the one place that converts
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole ? std::optional(number) : std::nullopt;
}

template <typename Number>
std::optional<Number> real_number(const Decimal& decimal) {
  const std::string text = fmt::format("{}{}e{}", decimal.negative ? "-" : "",
                                       decimal.digits.empty() ? "0" : decimal.digits, decimal.exponent);
  Number number = 0;
  // careful-number: the one place that converts
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && std::isfinite(number)) return number;
  const bool is_tiny = static_cast<std::int64_t>(decimal.digits.size()) + decimal.exponent <= 0;
  return is_tiny ? std::optional(Number{0}) : std::nullopt;
}

}  // namespace

template <typename Number>
std::optional<Number> parse_number(std::string_view text, const NumberRange<Number>& range) {
  const std::optional<Decimal> decimal = parse_decimal(text);
  if (!decimal) return std::nullopt;
  std::optional<Number> number;
  if constexpr (std::is_integral_v<Number>) {
    number = whole_number<Number>(*decimal);
  } else {
    number = real_number<Number>(*decimal);
  }
  return number && range.holds(*number) ? number : std::nullopt;
}

template <typename Number>
std::string number_text(Number number) {
  return fmt::format("{}", number);
}

template <typename Number>
std::string describe_range(const NumberRange<Number>& range) {
  return range.least_is == LeastIs::allowed ? fmt::format("from {} to {}", range.least, range.most)
                                            : fmt::format("above {} and up to {}", range.least, range.most);
}

template <typename Number>
std::string not_a_number_message(std::string_view text, const NumberRange<Number>& range) {
  return fmt::format("'{}' is not a {}number {}", text, std::is_integral_v<Number> ? "whole " : "",
                     describe_range(range));
}

template std::optional<int> parse_number(std::string_view text, const NumberRange<int>& range);
template std::optional<std::int64_t> parse_number(std::string_view text, const NumberRange<std::int64_t>& range);
template std::optional<std::uint64_t> parse_number(std::string_view text, const NumberRange<std::uint64_t>& range);
template std::optional<float> parse_number(std::string_view text, const NumberRange<float>& range);
template std::optional<double> parse_number(std::string_view text, const NumberRange<double>& range);
template std::string number_text(int number);
template std::string number_text(std::int64_t number);
template std::string number_text(std::uint64_t number);
template std::string number_text(float number);
template std::string number_text(double number);
template std::string describe_range(const NumberRange<int>& range);
template std::string describe_range(const NumberRange<std::int64_t>& range);
template std::string describe_range(const NumberRange<std::uint64_t>& range);
template std::string describe_range(const NumberRange<float>& range);
template std::string describe_range(const NumberRange<double>& range);
template std::string not_a_number_message(std::string_view text, const NumberRange<int>& range);
template std::string not_a_number_message(std::string_view text, const NumberRange<std::int64_t>& range);
template std::string not_a_number_message(std::string_view text, const NumberRange<std::uint64_t>& range);
template std::string not_a_number_message(std::string_view text, const NumberRange<float>& range);
template std::string not_a_number_message(std::string_view text, const NumberRange<double>& range);

}  // namespace lockstep
