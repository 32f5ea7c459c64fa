// Files of pictures as people name them: files, folders, and lists of them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep {

// In the order of `named`; in the place of a folder the regular files below it, sorted by their paths, without those
// that are hidden or made by a system (is_system_name()), or in such a folder. Links to folders are not followed. What
// is no folder is taken for a file, also where nothing has the name. Throws Error(usage) if a folder cannot be listed.
std::vector<std::string> picture_files(const std::vector<std::filesystem::path>& named);

// The lines of a file, without those that are empty. Throws as for_each_line().
std::vector<std::string> lines_of(const std::filesystem::path& file);

}  // namespace lockstep
