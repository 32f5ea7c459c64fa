// Files that are written in place. Such a file may have other names (hard links): a backup made with `cp -l`, or a file
// that somebody else still needs. Whoever opens an existing file for writing calls break_hard_links() first.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/io/descriptor.hpp"

namespace lockstep {

enum class Content : std::uint8_t { kept, dropped };

// `file` is open under `name`, which is no symbolic link. If it has other names, `name` becomes a new file, with a copy
// of the content or empty, and is opened again with the open(2) flags `flags`. The content under the other names does
// not change. Otherwise returns `file`. Throws std::system_error with the system's reason.
Descriptor break_hard_links(Descriptor file, const std::filesystem::path& name, int flags, Content content);

}  // namespace lockstep
