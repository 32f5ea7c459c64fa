// Published recipes by name: their options and their source.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/run_options.hpp"

namespace lockstep {

// An option and its value; several values are separated by spaces: {"milestones", "30 60 80"}.
struct StatedField {
  std::string_view name;
  std::string_view value;
};

struct PublishedRecipe {
  std::string name;
  std::string source;
  std::vector<StatedField> fields;
};

// In the order of --help.
std::span<const PublishedRecipe> published_recipes();
// Null if no recipe has this name.
const PublishedRecipe* find_recipe(std::string_view name);
std::string known_recipes();  // "pai-cifar, ..."

// Sets everything that decides how weights are updated and what a test evaluates: to the recipe's value, or else to the
// default, whatever was set before. Seed, order, arithmetic, wire precision, initial weights and all other run options
// are kept. Image options are kept if the recipe does not set them. --max-steps may override the recipe's epochs.
void set_recipe(Settings& settings, const PublishedRecipe& recipe);

}  // namespace lockstep
