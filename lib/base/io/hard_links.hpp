// Safe in-place writing of files that may have other names (hard links): a backup made with `cp -l`, or a file that
// somebody else still needs. Call break_hard_links() after opening an existing file for writing.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/io/descriptor.hpp"

namespace lockstep {

enum class Content : std::uint8_t { kept, dropped };

// `file` is open under `name`, which is not a symbolic link. If it has other names, `name` becomes a new file, empty or
// with a copy of the content, opened with the open(2) flags `flags`. The content under the other names does not change.
// Otherwise returns `file`. Throws std::system_error with the system's reason.
Descriptor break_hard_links(Descriptor file, const std::filesystem::path& name, int flags, Content content);

}  // namespace lockstep
