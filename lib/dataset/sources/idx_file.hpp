// Reads one IDX file (http://yann.lecun.com/exdb/mnist), plain or compressed by gzip.
//
// The format: two zero bytes, a type byte (8: uint8, 12: int32), the number of dimensions in one byte, the dimensions
// as 32-bit integers, then the values. All integers are big-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep {

struct IdxFile {
  std::vector<std::size_t> dims;
  std::string values;

  std::uint8_t value(std::size_t at) const { return static_cast<std::uint8_t>(values[at]); }
};

// Both functions read `plain`, or the file with .gz appended, and use no more memory than the header states. They throw
// Error(usage) if it cannot be read. They throw Error(bad_data) if it has another form, is damaged, or holds more or
// fewer values than its header states. This one reads bytes in three dimensions.
IdxFile read_idx_images(const std::filesystem::path& plain);
// Reads bytes in one dimension, or QMNIST's labels: int32 rows of eight, with the class first.
IdxFile read_idx_labels(const std::filesystem::path& plain);

}  // namespace lockstep
