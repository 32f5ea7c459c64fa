// Index of a tar archive, so that its files are read without unpacking.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/io/regular_file.hpp"

namespace lockstep {

// The byte range [begin, begin + bytes) of a file.
struct ByteRange {
  std::int64_t begin = 0;
  std::int64_t bytes = 0;
};

struct TarEntry {
  std::string name;
  ByteRange content;
};

// A tar archive (ustar, GNU long names, pax paths and sizes), or one embedded in a range of a file. Thread-safe.
class TarFile {
 public:
  // Throws Error(usage) if the file cannot be read.
  explicit TarFile(std::filesystem::path path);

  ByteRange whole() const { return {0, static_cast<std::int64_t>(file_.bytes())}; }
  // The regular files of the archive in `part`, in order; folders and links are skipped. Verifies the checksum of every
  // header, and that its file ends inside `part`. Throws Error(bad_data) naming the byte position if the archive is
  // damaged or truncated.
  std::vector<TarEntry> entries(const ByteRange& part) const;
  // Throws Error(other) if the system does not return all bytes.
  void read(std::int64_t offset, std::span<char> bytes) const;

 private:
  std::filesystem::path path_;
  RegularFile file_;
};

}  // namespace lockstep
