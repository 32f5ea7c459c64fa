// A checkpoint: one file from which a training resumes bit for bit.
//
//   /weights/<name>       fp32 datasets: parameters and running statistics, as in a model file
//   /mean_weights/<name>  the same for the EMA of the weights; only if the training keeps one
//   /<state>/<name>       fp32 datasets: the optimizer's state of each parameter, in the parameter's layout; one group
//                         for each state array ("velocity" for SGD), with the names of optim/optimizer.hpp. Where
//                         ranks have weights of their own, <name> begins with the rank (step/local_sync.cpp)
//   @checkpoint_format    int32, 3; 5 with @network; 4 with early_stop in /state; 2 without @shorter_side and
//                         early_stop. Increases when a field is added, changed or removed, also in /state; but not for
//                         fields that exist only with a new option, which make earlier readers refuse the file
//   @model, @network, @classes, @sample_shape, @mean, @deviation, @shorter_side   as in a model file
//   @note, @tags          text [1] and [tags], written by the user; only if there are any
//   /state                uint8 [bytes], JSON: everything else; see training_state.hpp
//   @hash                 text [1], xxh3-128 over all of the above, 32 hex digits
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "files/checkpoint/training_state.hpp"
#include "files/model_file.hpp"
#include "optim/optimizer.hpp"
#include "step/weight_sync.hpp"

namespace lockstep {

inline constexpr std::int32_t checkpoint_format = 5;

struct Checkpoint {
  ModelFile model;
  OptimizerState optimizer;
  TrainingState state;
  std::vector<ParameterStore::Entry> ema = {};  // the EMA, as model.entries; empty if none is kept
  std::string note = {};                        // of the run; empty if there is none
  std::vector<std::string> tags = {};           // of the run: KEY=VALUE each
};

// The format that is written: the earliest that has the checkpoint's fields.
std::int32_t format_of(const Checkpoint& checkpoint);

// The model that a training would write: the EMA if one is kept, otherwise the weights.
ModelFile model_to_use(Checkpoint checkpoint);

// The bytes of the file.
std::vector<std::byte> checkpoint_image(const Checkpoint& checkpoint);
// Writes the same content to disk, with the tensors of `sync` instead of those in `checkpoint`, and only one of them in
// memory. Collective unless sync.is_replicated(): every rank calls it, and only the one with a `file` writes. It takes
// part to the end even if it cannot write; then it throws.
void stream_checkpoint(UnpublishedFile* file, const Checkpoint& checkpoint, const WeightSync& sync);

// Treats the file as untrusted, like parse_model_file(), and checks it against its hash. Throws Error(usage) if the
// file cannot be opened, and Error(bad_data) with the defect.
Checkpoint read_checkpoint(const std::filesystem::path& path);
// The same from a file's bytes, which may be changed; `path` is for messages.
Checkpoint parse_checkpoint(const std::filesystem::path& path, std::string& image);

// The model in a model file, or model_to_use() of a checkpoint. Throws as read_checkpoint().
ModelFile read_weights(const std::filesystem::path& path);
bool is_checkpoint(const std::filesystem::path& path, std::string& image);

}  // namespace lockstep
