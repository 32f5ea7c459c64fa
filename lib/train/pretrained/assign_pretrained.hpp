// Loads weights from a file into a model.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "recipe/recipe.hpp"
#include "step/model.hpp"

namespace lockstep {

// "fc." of "fc.bias": the prefix of the layer that was registered last.
std::string head_of(const ParameterStore& store);

// Wrappers of other programs prepend prefixes to names: "module.", "model.", "module._orig_mod.". If all names of the
// model occur behind one such prefix, it is removed from `entries` and returned. With Head::fresh, the names of the
// last layer may be missing. If the names occur without prefix, or if no prefix fits, nothing changes. Throws
// Error(usage) if several prefixes fit. `path` is for messages.
std::string remove_prefix(const std::filesystem::path& path, std::vector<ParameterStore::Entry>& entries,
                          const ParameterStore& store, Head head);

// "weights in 'w.safetensors': 'module.' is left out of their names"; std::nullopt if the prefix is empty.
std::optional<std::string> describe_prefix(const std::filesystem::path& path, const std::string& prefix);

// Assigns all weights and statistics of `model`, whose store is allocated, after remove_prefix(). Returns
// describe_prefix(). Throws Error(usage) if they do not fit: weights for another image size (with another stem), for
// other classes, or of another model, which the message names. `path` is for messages.
std::optional<std::string> assign_pretrained(const std::filesystem::path& path,
                                             std::vector<ParameterStore::Entry> entries, Model& model);

}  // namespace lockstep
