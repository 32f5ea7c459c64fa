// Reads every byte of a data set again, compares it with the hashes in its manifest, and opens each shard as a training
// does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "dataset/shards/manifest.hpp"

namespace lockstep {

// What is wrong with a shard's bytes, as one sentence that names it and the damaged blocks; nothing where they are
// those that were hashed.
std::optional<std::string> damage_of(const std::filesystem::path& directory, const ShardEntry& entry,
                                     std::int64_t block_bytes);

// Collective; the shards are shared out among the ranks. One sentence for each shard that is damaged or that a reader
// refuses, the same on all ranks.
std::vector<std::string> find_damage(const Communicator& world, const std::filesystem::path& directory,
                                     const Manifest& manifest);

enum class VerifyOutput : std::uint8_t {
  summary,      // a sentence for each split
  root_hashes,  // a line for each split of an undamaged data set: "train 0123456789abcdef0123456789abcdef"
};

// Collective. `directory` holds a manifest, or splits that do. Says what was read; throws Error(bad_data) if any shard
// is damaged, Error(usage) if there is no data set. Where a shard could not be checked, as no file could be opened, the
// failure is the system's reason and never bad_data.
void verify(const Communicator& world, const std::filesystem::path& directory,
            VerifyOutput output = VerifyOutput::summary);

}  // namespace lockstep
