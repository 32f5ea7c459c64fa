// What a weight synchronization keeps, for comparisons.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "files/checkpoint/checkpoint.hpp"
#include "step/weight_sync.hpp"
#include "support/samples/small_checkpoint.hpp"

namespace lockstep {

// Collective. Everything that a training learns: all tensors, by group.
inline std::string hash_of(const WeightSync& sync) {
  std::string hashes;
  for (const std::string& group : sync.groups()) {
    std::vector<ParameterStore::Entry> entries;
    sync.visit(group, [&](const ParameterStore::Entry& entry) { entries.push_back(entry); });
    hashes += group + " " + weights_hash(entries) + " ";
  }
  return hashes;
}

struct StreamedCheckpoint {
  Checkpoint read;      // back from the file that was streamed
  Checkpoint expected;  // with the tensors of the synchronization
};

// Collective. On rank 0; nothing on others.
inline std::optional<StreamedCheckpoint> streamed(const Communicator& world, const WeightSync& sync,
                                                  const std::filesystem::path& path) {
  Checkpoint checkpoint = small_checkpoint();
  TrainingTensors tensors = tensors_of(sync);
  std::optional<UnpublishedFile> file;
  if (world.rank() == 0) file.emplace(path);
  stream_checkpoint(file ? &*file : nullptr, checkpoint, sync);
  if (!file) return std::nullopt;
  file->publish([] {});
  checkpoint.model.entries = std::move(tensors.weights);
  checkpoint.optimizer = std::move(tensors.optimizer);
  checkpoint.ema = std::move(tensors.ema);
  return StreamedCheckpoint{read_checkpoint(path), std::move(checkpoint)};
}

}  // namespace lockstep
