// Reads weights that users supply: our own files, and files of other programs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "files/model_file.hpp"

namespace lockstep {

// The kind of a file of weights, as its bytes show. Other programs write safetensors and state_dict (HDF5 with a
// dataset for each tensor).
enum class WeightsKind : std::uint8_t { model_file, checkpoint, safetensors, state_dict };

// Throws Error(usage) if a file begins like another known format, and names the format: a PyTorch pickle, a ZIP
// archive, NumPy's. For a pickle the message shows how to convert it; nothing here opens one, because it can run code.
// `start`: the file's first bytes; for a ZIP archive they must include the name of its first file.
void refuse_unsupported_formats(const std::filesystem::path& path, std::string_view start);

// Leaves `image` unchanged; `path` is for messages. An HDF5 file without a hash is ours if its root has our attributes.
// Throws Error(usage) if the file is none of these kinds (as refuse_unsupported_formats() if it knows the format), or
// is HDF5 without weights. Throws Error(bad_data) if an HDF5 file is too damaged to tell.
WeightsKind kind_of_weights(const std::filesystem::path& path, std::string& image);

// Parses safetensors or a state_dict. A file of another program contains only tensors, in name order: every other field
// is empty, even `model`. The metadata of export_model's files fill all fields. Throws Error(bad_data) with the defect.
ModelFile parse_pretrained_weights(const std::filesystem::path& path, WeightsKind kind, const std::string& image);

// Reads a file of any of these kinds. Names and sizes are checked when the weights are assigned. Throws Error(usage) if
// the file cannot be opened, and as the functions above.
ModelFile read_pretrained_weights(const std::filesystem::path& path);

}  // namespace lockstep
