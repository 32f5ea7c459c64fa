// Result files that a user names. Whether they can be written is checked before the computation.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/io/file.hpp"

namespace lockstep {

// Throws as system_failure() if a file cannot be written to `file`. Throws Error(usage) if `file` exists and is of
// another kind, because it would be lost. Messages name `option`, the option that set the file.
void require_place_for_result(const std::filesystem::path& file, const ReplaceableKind& kind, std::string_view option);

}  // namespace lockstep
