// Writes odd_files.csv: the source files that were left out of the shards, or repaired.
#pragma once

#include <filesystem>
#include <vector>

#include "dataset/sources/sample_source.hpp"

namespace lockstep {

// Writes `folder`/odd_files.csv, sorted by name, and logs the number of files. Does nothing if there are none. Lines
// are `file,taken,remark`, with cells as in base/text/table_cell.hpp. Throws as write_file_atomically().
void write_odd_files(const std::filesystem::path& folder, std::vector<OddFile> odd_files);

}  // namespace lockstep
