// Published recipes by name: what each states, as texts of options, and where it is published.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/run_options.hpp"

namespace lockstep {

// An option and its value, several with spaces between: {"milestones", "30 60 80"}.
struct StatedField {
  std::string_view name;
  std::string_view value;
};

struct PublishedRecipe {
  std::string name;
  std::string source;
  std::vector<StatedField> fields;
};

// In the order of names in --help.
std::span<const PublishedRecipe> published_recipes();
// Null where no recipe has the name.
const PublishedRecipe* find_recipe(std::string_view name);
std::string known_recipes();  // "pai-cifar, ..."

// Everything that decides how weights move, and what a test looks at, becomes what the recipe states, or else its plain
// default, whatever was there before (epochs give way to --max-steps); the seed, the arithmetic, where it runs, and how
// pictures are shown where it does not say, stay.
void set_recipe(Settings& settings, const PublishedRecipe& recipe);

}  // namespace lockstep
