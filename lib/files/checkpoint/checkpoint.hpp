// One file from which a training continues bit for bit.
//
//   /weights/<name>     fp32 dataset each: parameters and running statistics, as in a model file
//   /mean_weights/<name>  likewise, the mean of weights over steps; only of a training that keeps one
//   /<state>/<name>     fp32 dataset each: what the optimizer remembers of each parameter, in the parameter's layout; a
//                       group for each of its state arrays ("velocity" of SGD), named as optim/optimizer.hpp says
//   @checkpoint_format  int32, 3, or 2 without @shorter_side: another number whenever a field is added, changed or left
//   out, in /state too; but not
//                       for what stands only where a new option is used, and what earlier readers then refuse
//   @model, @classes, @sample_shape, @mean, @deviation, @shorter_side   as in a model file
//   @note, @tags        text [1] and [tags], in the user's words; only where there are any
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
#include "optim/optimizer.hpp"

namespace lockstep {

inline constexpr std::int32_t checkpoint_format = 3;

struct Checkpoint {
  ModelFile model;
  OptimizerState optimizer;
  TrainingState state;
  std::vector<ParameterStore::Entry> mean = {};  // as model.entries; empty: none is kept
  std::string note = {};                         // of the run; empty: none
  std::vector<std::string> tags = {};            // likewise: KEY=VALUE each
};

// As written: one before the newest without a shorter side.
std::int32_t format_of(const Checkpoint& checkpoint);

// What a training would write as its model: the weights, or their mean where one is kept.
ModelFile model_to_use(Checkpoint checkpoint);

// The bytes of the file.
std::vector<std::byte> checkpoint_image(const Checkpoint& checkpoint);

// Trusts nothing, as parse_model_file(); the whole file is checked against its hash. Throws Error(usage) if the file
// cannot be opened, Error(bad_data) naming what is wrong with it.
Checkpoint read_checkpoint(const std::filesystem::path& path);
// Of a file's bytes, which it may change; `path` is for messages.
Checkpoint parse_checkpoint(const std::filesystem::path& path, std::string& image);

// The model in a model file, or model_to_use() of a checkpoint. Fails as read_checkpoint().
ModelFile read_weights(const std::filesystem::path& path);
bool is_checkpoint(const std::filesystem::path& path, std::string& image);

}  // namespace lockstep
