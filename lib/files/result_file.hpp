// Result files that a user names. Whether they can be written is checked before the computation.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "base/io/file.hpp"

namespace lockstep {

// Throws as system_failure() if a file cannot be written to `file`. Throws Error(usage) if `file` exists and is of
// another kind, because it would be lost, or if its name has the ending of another kind. Messages name `option`, the
// option that set the file. `endings` of names: ".csv"; none: any. A name without an ending is always valid.
void require_place_for_result(const std::filesystem::path& file, const ReplaceableKind& kind, std::string_view option,
                              std::span<const std::string_view> endings = {});

}  // namespace lockstep
