// safetensors (https://huggingface.co/docs/safetensors): named tensors behind a JSON header.
//
//   8 bytes   the header's length N, little-endian
//   N bytes   {"<name>": {"dtype": "F32", "shape": [64, 3, 7, 7], "data_offsets": [begin, end]}, ...}; "__metadata__"
//             holds texts by name
//   the rest  values, little-endian, row by row; offsets count from here, and leave no gap
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files/import/weight_bytes.hpp"

namespace lockstep {

// Whether the bytes may be a safetensors file: their first eight count a JSON object that fits behind them.
bool looks_like_safetensors(std::string_view bytes);

// In name order; counters are left out. Trusts nothing: length, names, types, shapes and offsets are checked
// before memory is taken. Throws as WeightBytes::refuse().
std::vector<ParameterStore::Entry> read_safetensors(const WeightBytes& file);

// The texts that the header holds by name; none where it holds anything else. Throws likewise.
std::map<std::string, std::string> safetensors_metadata(const WeightBytes& file);

// The bytes of a file: fp32, in the order of `tensors`.
std::string safetensors_image(std::span<const ParameterStore::Entry> tensors,
                              const std::map<std::string, std::string>& metadata);

}  // namespace lockstep
