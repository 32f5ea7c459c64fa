// Reads every byte of a data set again, compares it with the hashes in its manifest, and opens each shard as a training
// does.
#pragma once

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

// Collective. `directory` holds a manifest, or splits that do. Says what was read; throws Error(bad_data) if any shard
// is damaged, Error(usage) if there is no data set.
void verify(const Communicator& world, const std::filesystem::path& directory);

}  // namespace lockstep
