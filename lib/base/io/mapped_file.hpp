// A memory-mapped file. The kernel reads its pages when they are touched.
#pragma once

#include <cstddef>
#include <span>

#include "base/io/regular_file.hpp"

namespace lockstep {

// Read-only. Touching bytes that the file has lost since (it was truncated, or its disk failed) raises SIGBUS.
class MappedFile {
 public:
  // The file need not stay open. Throws std::system_error with the system's reason; the caller knows the file's
  // purpose.
  explicit MappedFile(const RegularFile& file);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

// Asks the kernel to read `bytes`, a range of a mapped file, in order. Does not wait. If the kernel cannot, the pages
// are read when they are touched.
void read_ahead(std::span<const std::byte> bytes);

}  // namespace lockstep
