// Numbers in text: the one way from what people, files and the environment write to a value.
//
// Decimal, and nothing else in the text: 3, -0.5, 5e-4. Leading zeros count nothing (010 is ten, which C reads as
// eight): scripts pad numbers. A whole number may be written with an exponent or decimals if it is whole: 1e5, 2.0.
// Not taken: nan, inf, 0x10, +1, 1_000, 1,000, spaces, an empty text, and what is too large for the type. A fraction is
// rounded to the nearest value of the type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace lockstep {

enum class LeastIs : std::uint8_t { allowed, excluded };

// What a number may be.
template <typename Number>
struct NumberRange {
  Number least;
  Number most;
  LeastIs least_is = LeastIs::allowed;

  bool holds(Number number) const {
    return (least_is == LeastIs::allowed ? number >= least : number > least) && number <= most;
  }
};

// The number in `text`; nothing where it is none, or not in `range`. Number is int, std::int64_t, std::uint64_t, float
// or double.
template <typename Number>
std::optional<Number> parse_number(std::string_view text, const NumberRange<Number>& range);

// As parse_number() takes it, with as few digits as name it: "0.9".
template <typename Number>
std::string number_text(Number number);

// "from 0 to 0.9999", "above 0 and up to 1000000000"
template <typename Number>
std::string describe_range(const NumberRange<Number>& range);

// "'1.5' is no whole number from 1 to 256"
template <typename Number>
std::string not_a_number_message(std::string_view text, const NumberRange<Number>& range);

}  // namespace lockstep
