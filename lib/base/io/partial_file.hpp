// Unfinished files. Their names are unpredictable, so that no planted file or link is ever opened. A suffix
// distinguishes files that a killed run left behind from all others.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/io/descriptor.hpp"

namespace lockstep {

// The suffix of their names: ".train-00000.h5.0123456789abcdef.lockstep-partial".
inline constexpr std::string_view partial_suffix = ".lockstep-partial";

// A new name beside `path` with 16 random hexadecimal digits, different at each call. Long names are truncated.
std::filesystem::path partial_path(const std::filesystem::path& path);
// Whether a file name, without its folder, has the form of partial_path()'s.
bool is_partial_name(std::string_view name);

// The mode of new files, less the umask. A secret needs its own from the start: who has opened the file before a chmod
// may read on.
inline constexpr mode_t usual_mode = 0666;
inline constexpr mode_t secret_mode = S_IRUSR | S_IWUSR;

// Creates an empty file, open for reading and writing. Returns -1 with errno if it cannot: EEXIST if anything has the
// name, even a dangling symbolic link. Async-signal-safe, so that a signal handler can use a name made beforehand.
int create_new_file(const char* path, mode_t mode = usual_mode) noexcept;

struct PartialFile {
  std::filesystem::path path;
  Descriptor file;
};
// Creates an empty file under a name from partial_path(). The descriptor is -1, with errno, if it cannot be created.
PartialFile create_partial_file(const std::filesystem::path& path, mode_t mode = usual_mode);

// Removes the partial files in `folder` that are regular files, and returns their paths. Skips what it cannot list or
// remove.
std::vector<std::filesystem::path> remove_partial_files(const std::filesystem::path& folder);

}  // namespace lockstep
