// The command line of a training: one option for each field of the table in recipe/fields.hpp, the only place that
// knows their names. Options write into the settings, whose initial values are the defaults in --help.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "recipe/field.hpp"

namespace lockstep {

// Declares the options of some groups, for programs that do not train. device_options() needs the group `device`. Sets
// settings.run.device.plan_folder to its default folder. `settings` must outlive the parsing.
void declare_fields(CLI::App& app, Settings& settings, std::initializer_list<FieldGroup> groups);

// The same for single fields, by name.
void declare_fields(CLI::App& app, Settings& settings, std::initializer_list<std::string_view> names);

// Declares --recipe. Call it before the fields that a recipe sets.
void declare_recipe(CLI::App& app, Settings& settings);

// Declares --print-recipe. Options named in `needed_to_run` are not required with it. Call throw_if_called_for() in the
// program's final callback, with the text.
class PrintRecipe {
 public:
  PrintRecipe(CLI::App& app, const char* help, std::initializer_list<const char*> needed_to_run);
  // `text` returns what is printed.
  void throw_if_called_for(const std::function<std::string()>& text) const;

 private:
  const CLI::Option* option_;
};

// Declares all fields, --recipe and --print-recipe. Refuses an option that has no effect with the other options'
// values, and invalid settings. After parsing, `valid` has the settings. Both outlive the parsing.
void declare_training(CLI::App& app, Settings& settings, std::optional<ValidSettings>& valid);

}  // namespace lockstep
