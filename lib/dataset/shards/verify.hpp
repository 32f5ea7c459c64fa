// Verifies a data set: hashes every byte, compares with the manifest, and opens each shard as training does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "dataset/shards/manifest.hpp"

namespace lockstep {

// One sentence about the damage of a shard, naming it and the damaged blocks; std::nullopt if its bytes match the
// manifest.
std::optional<std::string> damage_of(const std::filesystem::path& directory, const ShardEntry& entry,
                                     std::int64_t block_bytes);

// Collective; the ranks share the shards. One sentence for each shard that is damaged or that a reader refuses, the
// same on all ranks.
std::vector<std::string> find_damage(const Communicator& world, const std::filesystem::path& directory,
                                     const Manifest& manifest);

enum class VerifyOutput : std::uint8_t {
  summary,      // one sentence per split
  root_hashes,  // one line per undamaged split: "train 0123456789abcdef0123456789abcdef"
};

// Collective. `directory` contains a manifest, or splits that do. Logs what was read. Throws Error(bad_data) if a shard
// is damaged, Error(usage) if there is no data set. If a shard could not be checked, for example because no file could
// be opened, the failure is the system's reason, never bad_data.
void verify(const Communicator& world, const std::filesystem::path& directory,
            VerifyOutput output = VerifyOutput::summary);

}  // namespace lockstep
