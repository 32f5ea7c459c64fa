// Weights as people give them: files of ours, and those that other programs wrote.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "files/model_file.hpp"

namespace lockstep {

// What the bytes of a file are, as far as they tell: safetensors and state_dict (HDF5, a data set for each tensor) are
// of other programs.
enum class WeightsKind : std::uint8_t { model_file, checkpoint, safetensors, state_dict };

// Throws Error(usage) where a file begins as another known form does, and names it: a pickle, with the way to convert
// it (it can run code, so nothing here opens one), a ZIP archive, NumPy's. `start`: its first bytes, of a ZIP archive
// with the name of the first file in it.
void refuse_other_forms(const std::filesystem::path& path, std::string_view start);

// Changes nothing of `image`; `path` is for messages. An HDF5 file without a hash is ours if its root says so. Throws
// Error(usage) if it is none of these, as refuse_other_forms() if it can, and of HDF5 that holds no weights;
// Error(bad_data) where an HDF5 file is too damaged to tell.
WeightsKind kind_of_weights(const std::filesystem::path& path, std::string& image);

// Safetensors or a state_dict. Of one that another program wrote only the tensors are known, in name order: every other
// field is empty, `model` too. The metadata of one that export_model wrote say all. Throws Error(bad_data) naming what
// is wrong.
ModelFile parse_pretrained_weights(const std::filesystem::path& path, WeightsKind kind, const std::string& image);

// From any of these files. Whether names and sizes are right shows when they are assigned. Throws Error(usage) if it
// cannot be opened, and as the above.
ModelFile read_pretrained_weights(const std::filesystem::path& path);

}  // namespace lockstep
