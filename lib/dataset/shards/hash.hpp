// Hashes of a data set's files, as hexadecimal digits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

std::string xxh3_128_hex(std::span<const std::byte> bytes);                                         // 32 digits
std::string xxh3_64_hex(std::span<const std::byte> bytes);                                          // 16 digits
std::vector<std::string> block_hashes(std::span<const std::byte> bytes, std::int64_t block_bytes);  // xxh3-64 of each

}  // namespace lockstep
