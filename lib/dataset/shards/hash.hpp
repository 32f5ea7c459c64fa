// Hashes of a data set's files, as hexadecimal digits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct XXH3_state_s;

namespace lockstep {

std::string xxh3_128_hex(std::span<const std::byte> bytes);                                         // 32 digits
std::string xxh3_64_hex(std::span<const std::byte> bytes);                                          // 16 digits
std::vector<std::string> block_hashes(std::span<const std::byte> bytes, std::int64_t block_bytes);  // xxh3-64 of each

// xxh3-128 of bytes that come piece by piece.
class GrowingHash {
 public:
  GrowingHash();
  void add(std::span<const std::byte> bytes);
  std::string hex() const;  // of all so far

 private:
  std::unique_ptr<XXH3_state_s, void (*)(XXH3_state_s*)> state_;
};

}  // namespace lockstep
