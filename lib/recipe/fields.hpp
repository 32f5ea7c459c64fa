// The table of all options of a training. It drives the command line (launch/field_options.hpp), the recipe in
// checkpoints and what a resume refuses (train/resume_rules.hpp), and summary.json.
//
// A new option is a member of Recipe or RunOptions and one entry in fields.cpp; tests/recipe/fields_test.cpp fails
// where one of the two is missing.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "recipe/field.hpp"

namespace lockstep {

// In the order of --help.
const std::vector<Field>& training_fields();

// Why nothing in these settings reads a field, which may then be no user's option: "--optimizer adamw does not read it
// (sgd and lars do). Leave it out". Empty: it is read.
std::string unused_option_message(const Field& field, const Settings& settings);

// All fields of a part by name, as json_of() gives them.
nlohmann::json json_of(const Settings& settings, Field::Part part);

}  // namespace lockstep
