// Compares the data that the ranks of a job read: copies on nodes' own disks may differ.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/same_on_ranks.hpp"
#include "dataset/shards/manifest.hpp"

namespace lockstep {

// Of one split, for require_same_on_ranks().
RankValue identity_of_data(const std::filesystem::path& folder, const Manifest& manifest);

// Collective. All splits of the data set `data`, also those that are not there. Throws as require_same_on_ranks(), and
// as read_manifest() where a manifest is damaged.
void require_same_data(const Communicator& world, const std::filesystem::path& data);

struct FileSize {
  std::filesystem::path path;
  std::int64_t bytes = 0;  // -1: nothing that can be read is there
};
// Collective. `paths` are the same on every rank. Sizes as rank 0 sees them.
std::vector<FileSize> sizes_on_rank_0(const Communicator& world, const std::vector<std::filesystem::path>& paths);

// Collective. `files` are the same on every rank, with the sizes that rank 0 sees. Throws Error(usage) on every rank if
// one of them has another size on another node; the sentence names file and node. The ranks of a node share the work.
void require_same_files(const Communicator& world, const std::vector<FileSize>& files);

// For require_same_on_ranks(): what to do where nodes have different files.
inline constexpr const char* same_files_advice =
    "Give all nodes the same files: from a folder that they share, or by run_on_nodes --dispatch.";

}  // namespace lockstep
