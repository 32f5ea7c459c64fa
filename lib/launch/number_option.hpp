// Options with numeric values. All numeric options use these functions, so they accept the same syntax
// (base/text/number.hpp) and print the same messages. CLI11 converts none of them: it accepts nan, reads 010 as eight
// and turns 2^64 into 2^64 - 1.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/text/number.hpp"

namespace lockstep {

// Refuses a value outside `range`; --help shows the range.
template <typename Number>
CLI::Validator number_check(const NumberRange<Number>& range) {
  const auto check = [range](const std::string& text) {
    return parse_number(text, range) ? std::string() : not_a_number_message(text, range);
  };
  return {check, describe_range(range), "number"};
}

// The type name in --help unless the program sets another.
template <typename Number>
const char* number_type() {
  if (!std::is_integral_v<Number>) return "FLOAT";
  return std::is_signed_v<Number> ? "INT" : "UINT";
}

// Passes the number to `set`.
template <typename Number>
CLI::Option* add_number_function(CLI::App& app, const std::string& flag,
                                 const std::function<void(std::type_identity_t<Number>)>& set,
                                 const NumberRange<Number>& range, const std::string& help) {
  const auto set_parsed = [set, range](const std::string& text) { set(parse_number(text, range).value()); };
  return app.add_option_function<std::string>(flag, set_parsed, help)
      ->check(number_check(range))
      ->type_name(number_type<Number>());
}

// --help shows the current value of `target` as the default.
template <typename Number>
CLI::Option* add_number(CLI::App& app, const std::string& flag, Number& target,
                        const NumberRange<std::type_identity_t<Number>>& range, const std::string& help) {
  const auto set = [&target](Number number) { target = number; };
  return add_number_function<Number>(app, flag, set, range, help)->default_str(number_text(target));
}

// A number that may remain unset.
template <typename Number>
CLI::Option* add_number(CLI::App& app, const std::string& flag, std::optional<Number>& target,
                        const NumberRange<std::type_identity_t<Number>>& range, const std::string& help) {
  const auto set = [&target](Number number) { target = number; };
  return add_number_function<Number>(app, flag, set, range, help)
      ->default_str(target ? number_text(*target) : std::string());
}

// One or several numbers, which replace those in `target`.
template <typename Number>
CLI::Option* add_numbers(CLI::App& app, const std::string& flag, std::vector<Number>& target,
                         const NumberRange<std::type_identity_t<Number>>& range, const std::string& help) {
  const auto set_all = [&target, range = NumberRange<Number>(range)](const std::vector<std::string>& texts) {
    target.clear();
    for (const std::string& text : texts) target.push_back(parse_number(text, range).value());
  };
  std::string shown;
  for (const Number number : target) shown += (shown.empty() ? "" : ",") + number_text(number);
  return app.add_option_function<std::vector<std::string>>(flag, set_all, help)
      ->check(number_check<Number>(range))
      ->default_str("[" + shown + "]")
      ->type_name(number_type<Number>());
}

}  // namespace lockstep
