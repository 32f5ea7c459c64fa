// The file that a search is called with: a search file, or an experiment file of Determined.
#pragma once

#include <filesystem>

#include "search/determined/experiment_file.hpp"
#include "search/space/space.hpp"

namespace lockstep {

struct SearchFile {
  Space space;
  Translation translation;  // of an experiment file; else empty
};

// `stated` replaces the file's `program` and `arguments`. Throws what read_start() throws, and Error(usage) with file,
// line and reason. If several things are wrong, prints all but the last, and throws the last.
SearchFile read_search_file(const std::filesystem::path& file, const StatedCommand& stated = {});

}  // namespace lockstep
