// Named values of options and files: a table of names and values, and conversions between them.
//
//   constexpr std::array<Choice<Schedule>, 2> schedules{{{"constant", Schedule::constant}, {"step", Schedule::step}}};
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/nearest_name.hpp"

namespace lockstep {

template <typename Value>
struct Choice {
  const char* name;
  Value value;
};

// "constant, step"
template <typename Choices>
std::string choice_names(const Choices& choices) {
  std::string names;
  for (const auto& choice : choices) names += (names.empty() ? "" : ", ") + std::string(choice.name);
  return names;
}

// Null if no choice has the name.
template <typename Choices>
const auto* find_choice(const Choices& choices, std::string_view name) {
  const auto found = std::ranges::find_if(choices, [&](const auto& choice) { return name == choice.name; });
  return found == choices.end() ? nullptr : &*found;
}

// The name of `value`, which must be in the table.
template <typename Choices, typename Value>
std::string choice_name(const Choices& choices, const Value& value) {
  return std::ranges::find_if(choices, [&](const auto& choice) { return choice.value == value; })->name;
}

// "unknown value 'linear'. Known: constant, step"; "unknown value 'stpe'. Did you mean step? Known: constant, step"
template <typename Choices>
std::string unknown_choice_message(const Choices& choices, std::string_view name) {
  std::vector<std::string> names;
  names.reserve(choices.size());
  for (const auto& choice : choices) names.emplace_back(choice.name);
  return fmt::format("unknown value '{}'. {}Known: {}", name, did_you_mean(name, names), choice_names(choices));
}

}  // namespace lockstep
