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

// The last line of a file, after HDF5's own bytes: says what hash all bytes before it have, so that nothing damaged
// need reach HDF5. Readers that do not know it are not disturbed by it.
std::string hash_line(std::span<const std::byte> bytes_before);
// Whether the file ends in a line that hash_line() may have made.
bool has_hash_line(std::string_view image);

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
