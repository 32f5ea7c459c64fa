// A checkpoint of a custom training loop (train/custom): what its program stores, by name.
//
//   /arrays/<name>             fp32 datasets of one dimension, [values]; only if there are any
//   @custom_checkpoint_format  int32, 1
//   /state                     uint8 [bytes], JSON: `steps_completed`, `seconds`, `metadata`, `options`; see below
//   @hash                      text [1], xxh3-128 over all of the above, 32 hex digits
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/io/file.hpp"
#include "base/streamed_array.hpp"

namespace lockstep {

using NamedArrays = std::map<std::string, std::vector<float>>;

struct CustomCheckpoint {
  std::int64_t steps_completed = 0;
  NamedArrays arrays = {};  // none is empty
  nlohmann::json metadata = nlohmann::json::object();
  double seconds = 0;                                 // of all attempts
  nlohmann::json options = nlohmann::json::object();  // of the program, which a resume keeps
};

// The bytes of the file. Throws Error(usage) if parse_custom_checkpoint() would not return the same checkpoint.
std::vector<std::byte> checkpoint_image(const CustomCheckpoint& checkpoint);
// Writes the same content to disk, with `arrays` in place of those of `checkpoint`, and only a block of one in memory.
// Collective if reading them is: every rank calls it, and only the one with a `file` writes. It takes part to the end
// even if it cannot write; then it throws.
void stream_custom_checkpoint(UnpublishedFile* file, const CustomCheckpoint& checkpoint,
                              std::span<const StreamedArray> arrays);

// Whether a file with an intact hash line has the attribute of this format.
bool is_custom_checkpoint(const std::filesystem::path& path, std::string& image);

// Treats the bytes of the file `path` as untrusted, and checks them against their hash. They may be changed. Throws
// Error(bad_data) with the defect.
CustomCheckpoint parse_custom_checkpoint(const std::filesystem::path& path, std::string& image);

}  // namespace lockstep
