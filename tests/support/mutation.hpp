// Deterministic damage to the bytes of a file.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/random.hpp"

namespace lockstep {

// How many rounds a test of damage makes: LOCKSTEP_MUTATIONS, else `usual`.
inline std::uint64_t mutation_rounds(std::uint64_t usual) {
  const char* const asked = std::getenv("LOCKSTEP_MUTATIONS");
  return asked == nullptr ? usual : std::strtoull(asked, nullptr, 10);
}

// `whole` with one to three places changed: a byte, a bit, a number of two to eight bytes at one of its limits, a
// stretch removed, doubled, filled, or the rest cut off.
inline std::string mutated(const std::string& whole, std::uint64_t round) {
  std::string bytes = whole;
  const std::uint64_t changes = 1 + philox(11, 0, round)[0] % 3;
  for (std::uint64_t change = 1; change <= changes && !bytes.empty(); ++change) {
    const auto draws = philox(11, change, round);
    const std::size_t at = draws[0] % bytes.size();
    const std::size_t length = std::min<std::size_t>(1 + draws[2] % 64, bytes.size() - at);
    constexpr std::array<std::uint64_t, 6> limits = {
        0, 1, 0x7FFFFFFF, 0x80000000, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF};
    switch (draws[1] % 8) {
      case 0:
        bytes[at] = static_cast<char>(draws[2]);
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << draws[2] % 8));
        break;
      case 2:
      case 3: {
        const std::uint64_t limit = limits.at(draws[2] % limits.size());
        for (std::size_t i = 0; i < std::min<std::size_t>(2U << draws[3] % 3, bytes.size() - at); ++i) {
          bytes[at + i] = static_cast<char>(limit >> 8 * i);
        }
        break;
      }
      case 4:
        bytes.erase(at, length);
        break;
      case 5:
        bytes.insert(at, bytes.substr(draws[3] % bytes.size(), length));
        break;
      case 6:
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), length, static_cast<char>(draws[3]));
        break;
      default:
        bytes.resize(at);
    }
  }
  return bytes;
}

}  // namespace lockstep
