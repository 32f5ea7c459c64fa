// The only way to open a file that others may have put there. A file that is not regular could block its reader, or
// deliver bytes without end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "base/io/descriptor.hpp"

namespace lockstep {

// Whether `path` itself may be a symbolic link. Folders in it always may.
enum class Links : std::uint8_t { followed, refused };

class RegularFile {
 public:
  // Opens for reading. Never waits for a writer. Throws std::system_error with the system's reason (the caller knows
  // the file's purpose), and Error(usage) for a pipe, a socket, a device, a directory or a refused link.
  explicit RegularFile(const std::filesystem::path& path, Links links = Links::followed);

  int descriptor() const { return descriptor_; }
  std::size_t bytes() const { return bytes_; }  // when it was opened; 0 for files in /proc

 private:
  Descriptor descriptor_;
  std::size_t bytes_ = 0;
};

// Throws Error(usage) if `path` is a pipe, a socket or a device, or a link to one. A link to a file that a process has
// open (such as /dev/stdout) is an error, too. Replacing these with a file would break them for their other users.
void require_replaceable(const std::filesystem::path& path);

}  // namespace lockstep
