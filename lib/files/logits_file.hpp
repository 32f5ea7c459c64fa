// A model's logits for each sample of a split, as a file for other programs.
//
//   /logits   fp32 [samples, classes], in the order of the data set
//   /labels   int32 [samples]
//   @classes  text [classes], names in label order
//   @model, @weights_hash, @data, @split  text: which model was tested on which data
//   @test_augment  text: the name of the test-time augmentation over whose views the logits are means, or "none"
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// Call before the computation. Throws as system_failure() if a file cannot be written to `file`, and Error(usage) if
// `file` exists and contains no logits, because it would be lost.
void require_place_for_logits(const std::filesystem::path& file);

struct LogitsOrigin {
  std::string model;
  std::string weights_hash;
  std::string data;
  std::string split;
  std::string test_augment;
};

// The bytes of the HDF5 file.
//
//   logits  [labels.size(), classes.size()]
std::vector<std::byte> logits_image(std::span<const float> logits, std::span<const std::int32_t> labels,
                                    std::span<const std::string> classes, const LogitsOrigin& origin);

}  // namespace lockstep
