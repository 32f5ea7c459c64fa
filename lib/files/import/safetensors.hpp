// The safetensors format (https://huggingface.co/docs/safetensors): named tensors behind a JSON header.
//
//   8 bytes   the header's length N, little-endian
//   N bytes   {"<name>": {"dtype": "F32", "shape": [64, 3, 7, 7], "data_offsets": [begin, end]}, ...}; "__metadata__"
//             maps names to texts
//   the rest  values, little-endian, row-major; offsets are relative to their start and leave no gaps
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files/import/weight_bytes.hpp"

namespace lockstep {

// Whether the bytes may be a safetensors file: the first eight are a plausible length, and a JSON object follows.
bool looks_like_safetensors(std::string_view bytes);

// The tensors in name order, without counters. Treats the file as untrusted: checks length, names, types, shapes and
// offsets before it allocates memory. Throws as WeightBytes::refuse().
std::vector<ParameterStore::Entry> read_safetensors(const WeightBytes& file);

// The header's metadata; empty if they are not all texts. Throws as WeightBytes::refuse().
std::map<std::string, std::string> safetensors_metadata(const WeightBytes& file);

// The bytes of a file: fp32, in the order of `tensors`.
std::string safetensors_image(std::span<const ParameterStore::Entry> tensors,
                              const std::map<std::string, std::string>& metadata);

}  // namespace lockstep
