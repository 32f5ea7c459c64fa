// --stage: copies of a data set on the node's own disk, which its ranks share.
//
//   FOLDER/train-<root hash>/   manifest.json, and each shard under its own name: whole, or not there
//
// A folder is named after the root hash, so what lies in it is right for every training that names it. Processes that
// stage the same at once, ranks of this job or of another, lease shards one by one and take each other's. A shard that
// another process has leased and does not go on with is copied anew, under another name until it is whole.
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
  std::vector<Split> splits;     // to copy; those without a manifest stay where they are
  std::filesystem::path folder;  // to copy into; made where it is missing
  // How long another process's unfinished copy may stay as long as it is until this job makes its own.
  std::chrono::milliseconds patience = std::chrono::seconds(30);
};

// Collective. Returns where the splits are to be read from. Copies what `folder` lacks: a shard that is there and as
// long as it should be has been hashed when it was copied. Calls `look` several times a second, on all ranks alike: it
// may throw, on all of them, to end the copying. Whatever ends it, no shard is left half written.
//
// Throws Error(bad_data) naming a shard or a manifest that is damaged, as system_failure() where something cannot be
// read or written, and where there is no room for what has to be copied, before anything is.
SplitFolders stage(const Communicator& world, const StageOptions& options, const std::function<void()>& look);

}  // namespace lockstep
