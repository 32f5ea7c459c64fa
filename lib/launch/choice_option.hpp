// Options whose value is one of a few names.
#pragma once

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>

namespace lockstep {

template <typename Value>
struct Choice {
  const char* name;
  Value value;
};

template <typename Value>
std::string names_of(std::span<const Choice<Value>> choices) {
  std::string names;
  for (const Choice<Value>& choice : choices) names += (names.empty() ? "" : ", ") + std::string(choice.name);
  return names;
}

// An option whose value is one of a few names. `shown` is the name of the default.
template <typename Value, std::size_t count, typename Target>
void add_choice(CLI::App& app, const std::string& flag, const std::array<Choice<Value>, count>& choices, Target& target,
                const std::string& shown, const std::string& help) {
  const auto find = [&choices](const std::string& name) {
    return std::ranges::find_if(choices, [&](const Choice<Value>& choice) { return name == choice.name; });
  };
  const std::string names = names_of<Value>(choices);
  const auto check = [find, &choices, names](const std::string& name) {
    return find(name) != choices.end() ? std::string() : fmt::format("unknown value '{}'. Known: {}", name, names);
  };
  app.add_option_function<std::string>(
         flag, [find, &target](const std::string& name) { target = find(name)->value; }, help)
      ->check(CLI::Validator(check, names, "known names"))
      ->default_str(shown)
      ->type_name("NAME");
}

template <typename Value, std::size_t count>
std::string name_of(const std::array<Choice<Value>, count>& choices, const Value& value) {
  return std::ranges::find_if(choices, [&](const Choice<Value>& choice) { return choice.value == value; })->name;
}

}  // namespace lockstep
