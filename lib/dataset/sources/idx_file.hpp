// One IDX file (http://yann.lecun.com/exdb/mnist), plain or packed by gzip.
//
// 0, 0, a byte for the type (8: bytes, 12: four bytes, the highest first), the number of dimensions, then each of them
// in four bytes, the highest first; then the values.
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

// They read `plain`, or the file beside it with .gz, and no more memory than the file's header states. They throw
// Error(usage) where it cannot be read, Error(bad_data) where it is of another form, is damaged, or holds fewer or more
// values than its header states.
// Bytes in three dimensions.
IdxFile read_idx_images(const std::filesystem::path& plain);
// Bytes in one dimension, or QMNIST's: numbers of four bytes in rows of eight, the class first.
IdxFile read_idx_labels(const std::filesystem::path& plain);

}  // namespace lockstep
