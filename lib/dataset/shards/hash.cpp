#include "dataset/shards/hash.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

namespace lockstep {

std::string xxh3_128_hex(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string xxh3_64_hex(std::span<const std::byte> bytes) {
  return fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()));
}

std::vector<std::string> block_hashes(std::span<const std::byte> bytes, std::int64_t block_bytes) {
  std::vector<std::string> hashes;
  while (!bytes.empty()) {
    const std::size_t count = std::min(bytes.size(), static_cast<std::size_t>(block_bytes));
    hashes.push_back(xxh3_64_hex(bytes.first(count)));
    bytes = bytes.subspan(count);
  }
  return hashes;
}

}  // namespace lockstep
