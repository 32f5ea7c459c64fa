// Files of results that a user names: whether they can be written is known before the work.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/io/file.hpp"

namespace lockstep {

// Throws as system_failure() if a file cannot be written to `file`, Error(usage) if something stands there that is not
// of this kind, and would be lost. `option` is where the user named it, for the words.
void require_place_for_result(const std::filesystem::path& file, const ReplaceableKind& kind, std::string_view option);

}  // namespace lockstep
