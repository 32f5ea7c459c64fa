// The list of a source's files that were left out of the shards, or set right for them.
#pragma once

#include <filesystem>
#include <vector>

#include "dataset/sources/sample_source.hpp"

namespace lockstep {

// Writes `folder`/odd_files.csv, sorted by name, and says how many there are; does nothing where there is none. Lines
// of `file,taken,remark`, cells as in base/text/table_cell.hpp. Throws as write_file_atomically().
void write_odd_files(const std::filesystem::path& folder, std::vector<OddFile> odd_files);

}  // namespace lockstep
