// Where the files of a tar archive lie, so that they are read without unpacking it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/io/regular_file.hpp"

namespace lockstep {

// A stretch of a file: [begin, begin + bytes).
struct FilePart {
  std::int64_t begin = 0;
  std::int64_t bytes = 0;
};

struct TarEntry {
  std::string name;
  FilePart content;
};

// A tar archive (ustar, GNU's long names, pax's paths and sizes), or one that lies in a part of a file. Thread-safe.
class TarFile {
 public:
  // Throws Error(usage) where the file cannot be read.
  explicit TarFile(std::filesystem::path path);

  FilePart whole() const { return {0, static_cast<std::int64_t>(file_.bytes())}; }
  // The regular files of the archive in `part`, in their order; folders and links are passed over. Every header's sum
  // is checked, and that its file ends within the part. Throws Error(bad_data) naming the byte where the archive is
  // damaged or ends too early.
  std::vector<TarEntry> entries(const FilePart& part) const;
  // Throws Error(other) where the system does not give them all.
  void read(std::int64_t offset, std::span<char> bytes) const;

 private:
  std::filesystem::path path_;
  RegularFile file_;
};

}  // namespace lockstep
