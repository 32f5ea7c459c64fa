// Picture files given by the user: files, folders, and lists.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep {

// The files in the order of `named`. A folder is replaced by the regular files below it, sorted by path. Hidden files,
// system files (is_system_name()) and files in such folders are left out. Links to folders are not followed. A name
// that is not a folder counts as a file, even if it does not exist. Throws Error(usage) if a folder cannot be listed.
std::vector<std::string> picture_files(const std::vector<std::filesystem::path>& named);

// The lines of a file, without empty ones. Throws as for_each_line().
std::vector<std::string> lines_of(const std::filesystem::path& file);

}  // namespace lockstep
