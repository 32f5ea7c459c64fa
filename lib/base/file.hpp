// Files that are whole or absent.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

// How the temporary names of files in the making end: ".train-00000.h5.4711.partial". A run that was killed leaves
// them.
inline constexpr std::string_view partial_suffix = ".partial";

// Writes `bytes` under a temporary name beside `path`, fsyncs, renames, and fsyncs the directory. On failure the
// temporary file is removed, an older file at `path` stays, and Error names the path and the system's reason: code 1
// where trying again may help (disk full, quota), usage where it will not (no permission, no such folder).
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file_atomically(const std::filesystem::path& path, std::string_view text);
// The same, but calls `before_rename` when all bytes are safe under the temporary name: what it throws leaves an older
// file as it is.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes,
                           const std::function<void()>& before_rename);

// The whole file. Throws Error(usage) if it cannot be opened, naming path and reason; Error(bad_data) above
// `limit_bytes`.
std::string read_file(const std::filesystem::path& path, std::size_t limit_bytes);

// The system's words for an errno value: "No space left on device".
std::string system_words(int error_number);

}  // namespace lockstep
