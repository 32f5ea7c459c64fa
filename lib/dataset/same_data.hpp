// Verifies that the ranks of a job read the same data: copies on the nodes' local disks can differ.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/same_on_ranks.hpp"
#include "dataset/shards/manifest.hpp"

namespace lockstep {

// Identifies a split, for require_same_on_ranks().
RankValue identity_of_data(const std::filesystem::path& folder, const Manifest& manifest);

// Collective. Compares all splits of the data set `data`, including absent ones. Throws as require_same_on_ranks(), and
// AgreedError(bad_data) if a manifest is damaged.
void require_same_data(const Communicator& world, const std::filesystem::path& data);

struct FileSize {
  std::filesystem::path path;
  std::int64_t bytes = 0;  // -1: missing or not readable
};
// Collective. `paths` are the same on every rank. Returns the sizes that rank 0 sees.
std::vector<FileSize> sizes_on_rank_0(const Communicator& world, const std::vector<std::filesystem::path>& paths);

// Collective. `files` are the same on every rank, with the sizes that rank 0 sees. Throws AgreedError(usage) if a file
// has another size on another node; the message names file and node. The ranks of a node share the work.
void require_same_files(const Communicator& world, const std::vector<FileSize>& files);

// Advice for require_same_on_ranks() if nodes have different files.
inline constexpr const char* same_files_advice =
    "Use a folder that all nodes share, or copy the files to all nodes with run_on_nodes --dispatch.";

}  // namespace lockstep
