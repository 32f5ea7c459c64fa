// Verifies a shard during use: each block is hashed again in every epoch, when it is first accessed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "dataset/shards/manifest.hpp"

namespace lockstep {

// Checks one shard. Thread-safe; two threads may hash the same block concurrently.
class BlockCheck {
 public:
  // `file` is the whole shard that `entry` describes. `file` and `entry` outlive this. `path` is for messages, and to
  // check that the file still exists.
  BlockCheck(std::filesystem::path path, std::span<const std::byte> file, const ShardEntry& entry,
             std::int64_t block_bytes);

  // Call before `bytes`, a part of the file, are used in `epoch` (counted from 0). Throws Error(bad_data) naming the
  // shard, the block that changed, and since when its samples may have been wrong. If the file is missing or has
  // another size, the error names the shard.
  void require_whole(std::span<const std::byte> bytes, std::int64_t epoch);

  // The bytes that require_whole() and a read of `bytes` will access in `epoch`, including the whole blocks that still
  // need hashing.
  std::span<const std::byte> to_be_read(std::span<const std::byte> bytes, std::int64_t epoch) const;

 private:
  void require_present() const;
  void require_block(std::size_t block) const;

  std::filesystem::path path_;
  std::span<const std::byte> file_;
  const ShardEntry& entry_;
  std::size_t block_bytes_;
  std::atomic<std::int64_t> present_in_ = -1;        // the last epoch in which the file's existence was checked
  std::vector<std::atomic<std::int64_t>> whole_in_;  // per block: the last epoch for which it is checked
};

}  // namespace lockstep
