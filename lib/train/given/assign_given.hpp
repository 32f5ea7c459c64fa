// Weights from a file into a model that was made for images of some size.
#pragma once

#include <filesystem>
#include <span>

#include "step/model.hpp"

namespace lockstep {

// All weights and statistics of `model`, whose store is allocated. Throws Error(usage) where the file's are of the same
// network for images of another size, which begins otherwise; else as ParameterStore::assign(). `path` is for messages.
void assign_given(const std::filesystem::path& path, std::span<const ParameterStore::Entry> entries, Model& model);

}  // namespace lockstep
