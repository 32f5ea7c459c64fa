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

std::string xxh3_128_hex(std::span<const std::byte> bytes);  // 32 digits
std::string xxh3_64_hex(std::span<const std::byte> bytes);   // 16 digits
// xxh3-64 of each block; the last block may be shorter.
std::vector<std::string> block_hashes(std::span<const std::byte> bytes, std::int64_t block_bytes);

// The last line of a file, after HDF5's own bytes: a hash of all bytes before it, so that damaged files are detected
// before HDF5 reads them. HDF5 ignores the line.
inline constexpr std::size_t hash_line_bytes = 52;
std::string hash_line(std::span<const std::byte> bytes_before);
// Whether the file ends with a line in the format of hash_line().
bool has_hash_line(std::string_view image);

// Incremental xxh3-128.
class GrowingHash {
 public:
  GrowingHash();
  void add(std::span<const std::byte> bytes);
  std::string hex() const;  // of all bytes so far

 private:
  std::unique_ptr<XXH3_state_s, void (*)(XXH3_state_s*)> state_;
};
std::string hash_line_of(const GrowingHash& bytes_before);

}  // namespace lockstep
