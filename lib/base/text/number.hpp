// Conversion between numbers and text, for options, files and the environment.
//
// The text must be one decimal number: 3, -0.5, 5e-4. Leading zeros have no meaning, because scripts pad numbers (010
// is ten; C reads it as eight). An integer may have an exponent or decimals if its value is integral: 1e5, 2.0.
// Rejected: nan, inf, 0x10, +1, 1_000, 1,000, spaces, an empty text, and values too large for the type. A fraction is
// rounded to the nearest value of the type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace lockstep {

enum class LeastIs : std::uint8_t { allowed, excluded };

// The values that a number may have.
template <typename Number>
struct NumberRange {
  Number least;
  Number most;
  LeastIs least_is = LeastIs::allowed;

  bool holds(Number number) const {
    return (least_is == LeastIs::allowed ? number >= least : number > least) && number <= most;
  }
};

// The number in `text`. Nothing if the text is not a number, or is not in `range`. Number is int, std::int64_t,
// std::uint64_t, float or double.
template <typename Number>
std::optional<Number> parse_number(std::string_view text, const NumberRange<Number>& range);

// The shortest text from which parse_number() restores the value: "0.9".
template <typename Number>
std::string number_text(Number number);

// "from 0 to 0.9999", "above 0 and up to 1000000000"
template <typename Number>
std::string describe_range(const NumberRange<Number>& range);

// "'1.5' is not a whole number from 1 to 256"
template <typename Number>
std::string not_a_number_message(std::string_view text, const NumberRange<Number>& range);

}  // namespace lockstep
