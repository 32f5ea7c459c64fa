#include "dataset/shards/hash.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <new>

namespace lockstep {

namespace {

constexpr std::string_view hash_text = "\nlockstep xxh3-128 ";
static_assert(hash_line_bytes == hash_text.size() + 32 + 1);

std::string hex_of(const XXH128_hash_t& hash) { return fmt::format("{:016x}{:016x}", hash.high64, hash.low64); }

}  // namespace

std::string xxh3_128_hex(std::span<const std::byte> bytes) { return hex_of(XXH3_128bits(bytes.data(), bytes.size())); }

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

std::string hash_line(std::span<const std::byte> bytes_before) {
  return fmt::format("{}{}\n", hash_text, xxh3_128_hex(bytes_before));
}

std::string hash_line_of(const GrowingHash& bytes_before) {
  return fmt::format("{}{}\n", hash_text, bytes_before.hex());
}

bool has_hash_line(std::string_view image) {
  return image.size() >= hash_line_bytes && image.ends_with('\n') &&
         image.substr(image.size() - hash_line_bytes).starts_with(hash_text);
}

GrowingHash::GrowingHash() : state_(XXH3_createState(), [](XXH3_state_s* state) { XXH3_freeState(state); }) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state_.get());
}

void GrowingHash::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
}

std::string GrowingHash::hex() const { return hex_of(XXH3_128bits_digest(state_.get())); }

}  // namespace lockstep
