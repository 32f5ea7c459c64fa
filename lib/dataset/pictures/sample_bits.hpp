// How many bits count in 16-bit PNG files, and which ones.
//
// Cameras and scanners of 10 to 14 bits write 16-bit files whose highest bits are 0: taken as 16 bits, they are nearly
// black. One dark picture looks the same, so the whole set is judged. Without an sBIT chunk, a set without one value
// above 12 bits is refused until its user states the bits. With the chunk, the bits are the highest ones, as the PNG
// standard has it, if a value of the set shows that; else the lowest ones.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "comm/communicator.hpp"
#include "picture/decode.hpp"

namespace lockstep {

// The files of a set, by index. The same on every rank.
struct PictureFiles {
  std::int64_t count = 0;
  std::function<std::string(std::int64_t index)> name;
  // The first bytes, as many as `most_bytes` or all. Empty where the file cannot be read and somebody else says so.
  std::function<std::string(std::int64_t index, std::size_t most_bytes)> read;
};

struct JudgedBits {
  SampleBits bits;                         // for decode_picture()
  std::optional<std::int64_t> noted = {};  // for a manifest: what was stated, or that sBIT chunks mean the lowest bits
};

// Collective: the ranks share the files. `stated` by a user, or noted earlier. Looks only at the beginnings of files,
// but for 16-bit PNG files, and at none if 16 is stated. Throws Error(usage) naming --sample-bits where nothing is
// stated and no value of all files without an sBIT chunk exceeds 4095, or where one exceeds what is stated.
JudgedBits sample_bits_of(const Communicator& world, const PictureFiles& files, std::optional<std::int64_t> stated);

}  // namespace lockstep
