// Weights from a file into a model that was made for images of some size.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "recipe/recipe.hpp"
#include "step/model.hpp"

namespace lockstep {

// "fc." of "fc.bias": the layer that was registered last.
std::string head_of(const ParameterStore& store);

// Other programs wrap a model in others, whose names then stand in front: "module.", "model.", "module._orig_mod.".
// Where all names of the model stand behind one such prefix, it is removed, and returned; with Head::fresh those of the
// last layer may be missing. Where the names stand there without, and where no prefix fits, nothing changes. Throws
// Error(usage) where several prefixes fit. `path` is for messages.
std::string remove_prefix(const std::filesystem::path& path, std::vector<ParameterStore::Entry>& entries,
                          const ParameterStore& store, Head head);

// "weights in 'w.safetensors': 'module.' is left out of their names"; nothing of an empty prefix.
std::optional<std::string> describe_prefix(const std::filesystem::path& path, const std::string& prefix);

// All weights and statistics of `model`, whose store is allocated, after remove_prefix(), whose describe_prefix() are
// returned. Throws Error(usage) where they are not the model's: where they are of the same network for images of
// another size, which begins otherwise, of other classes, or of other models, which are named. `path` is for messages.
std::optional<std::string> assign_pretrained(const std::filesystem::path& path,
                                             std::vector<ParameterStore::Entry> entries, Model& model);

}  // namespace lockstep
