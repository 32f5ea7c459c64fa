// The table of all training options. The command line (launch/field_options.hpp), the recipe in checkpoints, the rules
// for resuming (train/opening/resume_rules.hpp) and summary.json are generated from it.
//
// A new option needs a member of Recipe or RunOptions and one entry in fields.cpp; tests/recipe/fields_test.cpp fails
// if one of the two is missing.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "recipe/field.hpp"

namespace lockstep {

// All fields, in the order of --help.
const std::vector<Field>& training_fields();

// Why these settings do not use the field, so that a user must not give it: "--optimizer adamw does not read it (sgd
// and lars do). Leave it out". Empty if the field is used.
std::string unused_option_message(const Field& field, const Settings& settings);

// All fields of a part as a JSON object by name; values as from json_of(field, settings).
nlohmann::json json_of(const Settings& settings, Field::Part part);

}  // namespace lockstep
