// A file that one rank writes piece by piece, while other ranks take part.
#pragma once

#include <filesystem>
#include <functional>

#include "base/io/file.hpp"

namespace lockstep {

// Writes the content of a file. nullptr: this rank writes none, but takes part.
using WriteContent = std::function<void(UnpublishedFile* file)>;

// Publishes `path` with this content. Calls `write` in any case, with nullptr if the file cannot be created, because
// other ranks take part. `require_owner` throws if the file must not be created or published. Throws what it throws,
// what `write` throws, and as write_file_atomically().
void stream_file(const std::filesystem::path& path, const std::function<void()>& require_owner,
                 const WriteContent& write);

}  // namespace lockstep
