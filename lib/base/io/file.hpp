// Reading and writing of whole files. A written file is complete or absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/io/partial_file.hpp"
#include "base/io/regular_file.hpp"

namespace lockstep {

// Writes `bytes` under a temporary name beside `path` (see partial_file.hpp), fsyncs, renames, and fsyncs the
// directory. If `path` is a symbolic link, the link is replaced and its target stays. On failure the temporary file is
// removed, an older file at `path` stays, and Error names the path and the reason. Its code is `other` if a retry may
// help (disk full, quota). It is `usage` if a retry cannot help (no permission, no such folder, a pipe or device at
// `path`).
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file_atomically(const std::filesystem::path& path, std::string_view text);
// The same, but calls `before_rename` once all bytes are safe under the temporary name. If it throws, an older file
// stays as it is.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes,
                           const std::function<void()>& before_rename);

// The same for a file that is written piece by piece, which write_file_atomically() uses. A file that is not published
// is removed.
class UnpublishedFile {
 public:
  explicit UnpublishedFile(std::filesystem::path path, mode_t mode = usual_mode);
  UnpublishedFile(const UnpublishedFile&) = delete;
  UnpublishedFile& operator=(const UnpublishedFile&) = delete;
  ~UnpublishedFile();

  // Open for reading and writing, so that other libraries can write to it, too.
  int descriptor() const { return file_; }
  void append(std::span<const std::byte> bytes);
  // Takes so much space on the disk, so that another library's writes up to there cannot fail for want of space.
  void reserve(std::int64_t bytes);
  void shorten(std::int64_t bytes);  // `bytes`: the new length
  void publish(const std::function<void()>& before_rename);

 private:
  [[noreturn]] void give_up(int error_number);

  std::filesystem::path path_;
  std::filesystem::path partial_;  // empty once the file is published
  Descriptor file_;
};

// Whether no file has this name. A path that cannot be examined counts as present: its reader then reports the reason.
bool is_absent(const std::filesystem::path& path);

// A kind of file that a program writes, identified by its first bytes. `begins` gets at most 128 of them.
struct ReplaceableKind {
  std::string_view name;  // "table of predictions"
  bool (*begins)(std::string_view start);
};
// Call before writing to a name that a user chose. Throws Error(usage) if a nonempty file of another kind has the name:
// "'a.h5' exists and is not of the type 'PNG picture'. ...". Also throws as require_replaceable().
void require_own_kind(const std::filesystem::path& path, const ReplaceableKind& kind, std::string_view option);

// Opens the file. Throws Error(usage) with path and reason if it cannot be opened or is not a regular file.
RegularFile open_to_read(const std::filesystem::path& path);
// The whole file. Throws as open_to_read(); Error(bad_data) before reading if it is larger than `limit_bytes`;
// Error(other) if its length changes while it is read.
std::string read_file(const std::filesystem::path& path, std::size_t limit_bytes);
// The first `max_bytes` bytes, or the whole file if it is shorter. Throws as open_to_read().
std::string read_start(const std::filesystem::path& path, std::size_t max_bytes);
// Reads a file whose reported length is meaningless: one in /proc, or one that is being written. Throws as read_file()
// does if it is longer than `limit_bytes`.
std::string read_live_file(const std::filesystem::path& path, std::size_t limit_bytes);

// The system's message for an errno value: "No space left on device".
std::string system_error_message(int error_number);

}  // namespace lockstep
