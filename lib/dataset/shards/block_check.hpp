// Whether a shard in use still is what the manifest says: its blocks are hashed again in every epoch, each when it is
// first touched.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "dataset/shards/manifest.hpp"

namespace lockstep {

// Of one shard. Thread-safe; two threads that meet at a block may both hash it.
class BlockCheck {
 public:
  // `file` holds the whole shard that `entry` describes. All but this object outlives it; the path is for words and to
  // see whether the file is still there.
  BlockCheck(std::filesystem::path path, std::span<const std::byte> file, const ShardEntry& entry,
             std::int64_t block_bytes);

  // Call before `bytes`, a part of the file, are used in `epoch` (counted from 0). Throws Error(bad_data) naming the
  // shard, the block that changed and since when samples of it may have been wrong; or the shard, where its file is
  // gone or has another size.
  void require_whole(std::span<const std::byte> bytes, std::int64_t epoch);

  // What require_whole() and the reading of `bytes` will touch in `epoch`: the blocks that are yet to be hashed, whole.
  std::span<const std::byte> to_be_read(std::span<const std::byte> bytes, std::int64_t epoch) const;

 private:
  void require_present() const;
  void require_block(std::size_t block) const;

  std::filesystem::path path_;
  std::span<const std::byte> file_;
  const ShardEntry& entry_;
  std::size_t block_bytes_;
  std::atomic<std::int64_t> present_in_ = -1;        // the last epoch in which the file was looked at
  std::vector<std::atomic<std::int64_t>> whole_in_;  // of each block: epochs up to here need no look
};

}  // namespace lockstep
