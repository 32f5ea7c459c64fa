// Determines how many bits of 16-bit PNG samples are significant, and which ones.
//
// Cameras and scanners with 10 to 14 bits write 16-bit files whose highest bits are 0. Read as 16 bits, the pictures
// are nearly black. A single dark picture looks the same, so the decision uses the whole data set:
// - Files without an sBIT chunk: if no value exceeds 12 bits, the data set is refused until the user states the bits.
// - Files with an sBIT chunk: if some value exceeds the stated bits, the bits are the highest ones, as the PNG standard
//   requires. Otherwise they are the lowest ones.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "comm/communicator.hpp"
#include "picture/decode.hpp"

namespace lockstep {

// The files of a data set, by index. The same on every rank.
struct PictureFiles {
  std::int64_t count = 0;
  std::function<std::string(std::int64_t index)> name;
  // The first `max_bytes` bytes, or the whole file. Empty if the file cannot be read; the error is reported elsewhere.
  std::function<std::string(std::int64_t index, std::size_t max_bytes)> read;
};

struct JudgedBits {
  SampleBits bits;                         // for decode_picture()
  std::optional<std::int64_t> noted = {};  // for a manifest: the stated bits, or that sBIT chunks mean the lowest bits
};

// Collective; the ranks share the files. `stated` comes from the user or from a manifest. Only the beginnings of files
// are read, except for 16-bit PNG files; if 16 is stated, no file is read. Throws Error(usage) naming --sample-bits in
// two cases: if nothing is stated and no value in files without an sBIT chunk exceeds 4095, or if a value exceeds the
// stated bits.
JudgedBits sample_bits_of(const Communicator& world, const PictureFiles& files, std::optional<std::int64_t> stated);

}  // namespace lockstep
