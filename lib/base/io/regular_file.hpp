// The one way to open a file that others may have put there: what is no regular file could keep a reader waiting, or
// give bytes without end.
#pragma once

#include <cstddef>
#include <filesystem>

#include "base/io/descriptor.hpp"

namespace lockstep {

class RegularFile {
 public:
  // For reading; links are followed. Never waits for a writer. Throws std::system_error with the system's reason (the
  // caller knows what the file was for), Error(usage) where there is a pipe, a socket, a device or a directory.
  explicit RegularFile(const std::filesystem::path& path);

  int descriptor() const { return descriptor_; }
  std::size_t bytes() const { return bytes_; }  // when it was opened; 0 for files in /proc

 private:
  Descriptor descriptor_;
  std::size_t bytes_ = 0;
};

// Throws Error(usage) if `path` is a pipe, a socket or a device, or a link to one or to what a process has open (as
// /dev/stdout): a file that replaces it would take away what others use.
void require_replaceable(const std::filesystem::path& path);

}  // namespace lockstep
