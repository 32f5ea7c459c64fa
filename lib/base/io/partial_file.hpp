// Files in the making. Their names cannot be foreseen, nothing that was planted under such a name is opened, and a mark
// tells those that a killed run left from everybody else's files.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/io/descriptor.hpp"

namespace lockstep {

// How their names end: ".train-00000.h5.0123456789abcdef.lockstep-partial".
inline constexpr std::string_view partial_suffix = ".lockstep-partial";

// Such a name beside `path`, with 16 random digits: another one at each call. Long names are cut.
std::filesystem::path partial_path(const std::filesystem::path& path);
// Whether a file name, without its folder, is one of partial_path()'s.
bool is_partial_name(std::string_view name);

// A new, empty file, open for writing. -1 with errno if it cannot be made: EEXIST where anything has the name already,
// a symbolic link that leads nowhere included. Async-signal-safe, so that a handler can use a name made beforehand.
int create_new_file(const char* path) noexcept;

struct PartialFile {
  std::filesystem::path path;
  Descriptor file;
};
// A new, empty file under a name of partial_path(). Its descriptor is -1, with errno, if it cannot be made.
PartialFile create_partial_file(const std::filesystem::path& path);

// Removes the regular files of such names from `folder`; returns which. What cannot be listed or removed stays.
std::vector<std::filesystem::path> remove_partial_files(const std::filesystem::path& folder);

}  // namespace lockstep
