// One shard on its way from where it lies to a folder of copies.
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

// The name of an unfinished copy. The process that makes it leases it. If the process that leased copy 1 makes no
// progress, another process begins copy 2, and so on.
std::filesystem::path unfinished_copy(const std::filesystem::path& folder, const ShardEntry& entry, int copy = 1);
// Removes unfinished copies that nobody has leased: what is left when another copy was finished first.
void remove_unfinished_copies(const std::filesystem::path& folder, const ShardEntry& entry);
// Whether a regular file of this length has the name. It was hashed before it got it.
bool is_copied(const std::filesystem::path& path, std::int64_t bytes);

// A copy that ends before it is whole leaves nothing.
class ShardCopy {
 public:
  // Null where another process makes this copy. `entry` outlives it. Throws Error as its shard or `to` cannot be
  // opened.
  static std::unique_ptr<ShardCopy> begin(const std::filesystem::path& from, const std::filesystem::path& to,
                                          const ShardEntry& entry, int copy = 1);

  // Copies the next few MiB and returns how many bytes it were; 0 when the copy is whole, has the right hash, is safe
  // on disk and has its name, or when another process has finished a copy first, which stays as it is. Throws
  // Error(bad_data) naming a shard that is not what the manifest says, and as system_failure() where it cannot be read
  // or its copy not be written.
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
