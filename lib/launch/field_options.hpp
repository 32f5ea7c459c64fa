// The command line of a training: an option for each field of the table in recipe/fields.hpp, and nothing else knows
// their names. They write into the settings, whose values before parsing are the defaults that --help shows.
#pragma once

#include <CLI/CLI.hpp>
#include <initializer_list>

#include "recipe/field.hpp"

namespace lockstep {

// The options of some groups, for programs that are no training: of what device_options() needs, the group `device`.
// Gives settings.run.device.plan_folder its usual place. `settings` outlives the parsing.
void declare_fields(CLI::App& app, Settings& settings, std::initializer_list<FieldGroup> groups);

// --recipe, before the fields that it sets.
void declare_recipe(CLI::App& app, Settings& settings);

// All of them, and --recipe and --print-recipe. An option that nothing reads with the others' values is refused.
void declare_training(CLI::App& app, Settings& settings);

}  // namespace lockstep
