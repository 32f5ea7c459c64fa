// Copies one shard from its original location to a folder of staged copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/io/leased_file.hpp"
#include "base/io/regular_file.hpp"
#include "dataset/shards/hash.hpp"
#include "dataset/shards/manifest.hpp"

namespace lockstep {

// Name of an unfinished copy, leased by the process that writes it. If the process that leased copy 1 makes no
// progress, another process begins copy 2, and so on.
std::filesystem::path unfinished_copy(const std::filesystem::path& folder, const ShardEntry& entry, int copy = 1);
// Removes unfinished copies that nobody has leased, which remain if another copy was finished first.
void remove_unfinished_copies(const std::filesystem::path& folder, const ShardEntry& entry);
// Whether a regular file with this name and length exists. It was verified before it got this name.
bool is_copied(const std::filesystem::path& path, std::int64_t bytes);

// A copy in progress. Its destruction removes the file if it is unfinished.
class ShardCopy {
 public:
  // Null if another process is making this copy. `entry` outlives this. Throws Error if the shard or `to` cannot be
  // opened.
  static std::unique_ptr<ShardCopy> begin(const std::filesystem::path& from, const std::filesystem::path& to,
                                          const ShardEntry& entry, int copy = 1);

  // Copies the next few MiB and returns the number of bytes. Returns 0 if the copy is complete: its hash is correct, it
  // is synced to disk, and it has its final name. Also returns 0 if another process finished a copy first; that copy is
  // kept. Throws Error(bad_data) naming a shard that does not match the manifest, and as system_failure() if reading or
  // writing fails.
  std::int64_t advance();

 private:
  ShardCopy(std::filesystem::path from, std::filesystem::path to, const ShardEntry& entry, RegularFile source,
            std::unique_ptr<LeasedFile> copy);
  std::size_t read(std::span<std::byte> bytes) const;
  void write(std::span<const std::byte> bytes) const;
  void finish();

  std::filesystem::path from_;
  std::filesystem::path to_;
  const ShardEntry& entry_;
  RegularFile source_;
  std::unique_ptr<LeasedFile> copy_;
  GrowingHash hash_;
  std::int64_t copied_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace lockstep
