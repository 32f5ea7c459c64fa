// What a model gave for each sample of a split, before softmax, for other programs to read.
//
//   /logits   fp32 [samples, classes], in the order of the data set
//   /labels   int32 [samples], of the samples
//   @classes  text [classes], names in the order of the labels
//   @model, @weights_hash, @data, @split  text: what was tested on what
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// Call before the work. Throws as system_failure() where a file cannot be written to `file`, Error(usage) where
// something stands there that holds no logits, and would be lost. `option` is where the user named it.
void require_place_for_logits(const std::filesystem::path& file);

struct LogitsOrigin {
  std::string model;
  std::string weights_hash;
  std::string data;
  std::string split;
};

// The bytes of the file, HDF5.
//
//   logits  [labels.size(), classes.size()]
std::vector<std::byte> logits_image(std::span<const float> logits, std::span<const std::int32_t> labels,
                                    std::span<const std::string> classes, const LogitsOrigin& origin);

}  // namespace lockstep
