// Files that are whole or absent.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/io/partial_file.hpp"
#include "base/io/regular_file.hpp"

namespace lockstep {

// Writes `bytes` under a temporary name beside `path` (see partial_file.hpp), fsyncs, renames, and fsyncs the
// directory. Where `path` is a symbolic link, the link is replaced and what it leads to stays. On failure the temporary
// file is removed, an older file at `path` stays, and Error names the path and the system's reason: code 1 where trying
// again may help (disk full, quota), usage where it will not (no permission, no such folder, a pipe or device at
// `path`).
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file_atomically(const std::filesystem::path& path, std::string_view text);
// The same, but calls `before_rename` when all bytes are safe under the temporary name: what it throws leaves an older
// file as it is.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes,
                           const std::function<void()>& before_rename);

// Whether nothing has this name. A path that cannot be looked at counts as there: whoever reads it then learns why.
bool is_absent(const std::filesystem::path& path);

// A kind of file that a program writes, as its first bytes tell (at most 128 of them are shown).
struct ReplaceableKind {
  std::string_view name;  // "table of predictions"
  bool (*begins)(std::string_view start);
};
// Call before writing to a name that a user chose. Throws Error(usage) where a file of another kind has it, unless it
// is empty: "'a.h5' exists and is no PNG picture (it would be lost). Choose another name for --pictures."; and as
// require_replaceable().
void require_own_kind(const std::filesystem::path& path, const ReplaceableKind& kind, std::string_view option);

// Opens it. Throws Error(usage) if it cannot be opened or is no regular file, naming path and reason.
RegularFile open_to_read(const std::filesystem::path& path);
// The whole file. Throws as open_to_read(); Error(bad_data) above `limit_bytes`, before anything is read; Error(other)
// if its length changes while it is read.
std::string read_file(const std::filesystem::path& path, std::size_t limit_bytes);
// The first bytes, as many as `most_bytes` or all. Throws as open_to_read().
std::string read_start(const std::filesystem::path& path, std::size_t most_bytes);
// Of a file whose length says nothing: one in /proc, or one that somebody writes to at the same time. Up to
// `limit_bytes`; else throws as above.
std::string read_live_file(const std::filesystem::path& path, std::size_t limit_bytes);

// The system's words for an errno value: "No space left on device".
std::string system_error_message(int error_number);

}  // namespace lockstep
