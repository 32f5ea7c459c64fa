// A file's bytes as memory, read by the system when they are touched.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace lockstep {

// Read-only. Touching bytes that the file has lost since (it was cut, its disk failed) raises SIGBUS.
class MappedFile {
 public:
  // Throws std::system_error with the system's reason: the caller knows what the file was for.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace lockstep
