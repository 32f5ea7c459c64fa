// Appends to files that others read at the same time.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/io/descriptor.hpp"

namespace lockstep {

// Opens a file for appending, and for reading; creates it if it is absent. Breaks hard links (see hard_links.hpp).
// Throws as system_failure(), and Error(usage) for a link, a pipe or a device. Messages name `option`.
Descriptor open_to_append(const std::filesystem::path& path, std::string_view option);

// Appends all of `text` to an open file that nobody else writes to. On failure appends nothing and returns false, with
// errno set.
bool append_whole(int descriptor, std::string_view text);

}  // namespace lockstep
