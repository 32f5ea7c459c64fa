// One file from which a training continues bit for bit.
//
//   /weights/<name>     fp32 dataset each: parameters and running statistics, as in a model file
//   /velocity/<name>    fp32 dataset each: momentum of each parameter, in the parameter's layout
//   @checkpoint_format  int32, 2: another number whenever a field is added, changed or left out, in /state too
//   @model, @classes, @sample_shape, @mean, @deviation   as in a model file
//   /state              uint8 [bytes], JSON: everything else; see training_state.hpp
//   @hash               text [1], xxh3-128 over all of the above, 32 hex digits
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "files/checkpoint/training_state.hpp"
#include "files/model_file.hpp"

namespace lockstep {

inline constexpr std::int32_t checkpoint_format = 2;

struct Checkpoint {
  ModelFile model;
  std::vector<ParameterStore::Entry> velocity;  // in name order
  TrainingState state;
};

// The bytes of the file.
std::vector<std::byte> checkpoint_image(const Checkpoint& checkpoint);

// Trusts nothing, as read_model_file(); the whole file is checked against its hash. Throws Error(usage) if the file
// cannot be opened, Error(bad_data) naming what is wrong with it.
Checkpoint read_checkpoint(const std::filesystem::path& path);
// Of a file's bytes, which it may change; `path` is for messages.
Checkpoint parse_checkpoint(const std::filesystem::path& path, std::string& image);

// The model in a model file or in a checkpoint.
ModelFile read_weights(const std::filesystem::path& path);
bool is_checkpoint(const std::filesystem::path& path, std::string& image);

}  // namespace lockstep
