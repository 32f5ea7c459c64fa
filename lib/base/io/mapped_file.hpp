// A file's bytes as memory, read by the system when they are touched.
#pragma once

#include <cstddef>
#include <span>

#include "base/io/regular_file.hpp"

namespace lockstep {

// Read-only. Touching bytes that the file has lost since (it was cut, its disk failed) raises SIGBUS.
class MappedFile {
 public:
  // The file need not stay open. Throws std::system_error with the system's reason: the caller knows what it was for.
  explicit MappedFile(const RegularFile& file);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

// Asks the system to read `bytes`, a part of a file in memory, from its beginning to its end; waits for nothing. Where
// it cannot, they are read when they are touched.
void read_ahead(std::span<const std::byte> bytes);

}  // namespace lockstep
