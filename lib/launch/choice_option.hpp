// Options with named choices, for programs that do not train.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "base/text/choice.hpp"

namespace lockstep {

// Refuses a value that is none of the names; --help lists them. `choices` must outlive the parsing.
template <typename Choices>
CLI::Validator choice_check(const Choices& choices) {
  const auto check = [&choices](const std::string& name) {
    return find_choice(choices, name) != nullptr ? std::string() : unknown_choice_message(choices, name);
  };
  return {check, choice_names(choices), "known names"};
}

// --help shows the name of the current value of `target` as the default. `choices` must outlive the parsing.
template <typename Choices, typename Target>
void add_choice(CLI::App& app, const std::string& flag, const Choices& choices, Target& target,
                const std::string& help) {
  app.add_option_function<std::string>(
         flag, [&choices, &target](const std::string& name) { target = find_choice(choices, name)->value; }, help)
      ->check(choice_check(choices))
      ->default_str(choice_name(choices, target))
      ->type_name("NAME");
}

// One or several names. `choices` must outlive the parsing.
template <typename Choices>
CLI::Option* add_choices(CLI::App& app, const std::string& flag, const Choices& choices,
                         std::vector<std::string>& target, const std::string& help) {
  return app.add_option(flag, target, help)->check(choice_check(choices))->type_name("NAME");
}

}  // namespace lockstep
