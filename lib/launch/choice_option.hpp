// Options of programs other than trainings whose value is one of a few names.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/text/choice.hpp"

namespace lockstep {

// --help shows the name of what `target` holds now as the default. `choices` outlives the parsing.
template <typename Choices, typename Target>
void add_choice(CLI::App& app, const std::string& flag, const Choices& choices, Target& target,
                const std::string& help) {
  const auto check = [&choices](const std::string& name) {
    return find_choice(choices, name) != nullptr ? std::string() : unknown_choice_words(choices, name);
  };
  app.add_option_function<std::string>(
         flag, [&choices, &target](const std::string& name) { target = find_choice(choices, name)->value; }, help)
      ->check(CLI::Validator(check, choice_names(choices), "known names"))
      ->default_str(choice_name(choices, target))
      ->type_name("NAME");
}

}  // namespace lockstep
