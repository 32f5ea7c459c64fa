// --stage: copies a data set to the node's local disk, shared by the ranks of the node.
//
//   FOLDER/train-<root hash>/   manifest.json, and each shard under its own name: complete or absent
//
// A folder is named after the root hash, so its content is valid for every training that uses that data set. Processes
// that stage the same data at once, in this job or another, lease shards one by one and use each other's copies. If the
// process that leased a shard makes no progress, another process copies the shard under a temporary name.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <vector>

#include "comm/communicator.hpp"
#include "dataset/split.hpp"

namespace lockstep {

struct StageOptions {
  SplitFolders from;
  std::vector<Split> splits;     // splits to copy; those without a manifest stay in place
  std::filesystem::path folder;  // destination, created if missing
  // If another process's unfinished copy does not grow for this long, this job makes its own.
  std::chrono::milliseconds patience = std::chrono::seconds(30);
};

// Collective. Returns the folders to read the splits from. Copies only what `folder` lacks: existing shards of the
// right length were verified when they were copied. Calls `look` several times a second, on all ranks; it may throw, on
// all ranks, to abort. No partial shards remain in any case.
//
// Throws Error(bad_data) naming a damaged shard or manifest. Throws as system_failure() if something cannot be read or
// written. If space is insufficient, it throws before anything is copied.
SplitFolders stage(const Communicator& world, const StageOptions& options, const std::function<void()>& look);

}  // namespace lockstep
