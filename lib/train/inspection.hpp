// What a file of ours holds, or weights that another program wrote, in words for people.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep {

// A shard, a manifest (or its folder), a data set's folder (each of its splits), a model file, a checkpoint, weights
// that another program wrote or the folder of a training. Throws Error(usage) if the file is missing or none of these,
// Error(bad_data) if it is damaged.
std::string describe_file(const std::filesystem::path& path);

// The split whose pictures are drawn: of a data set's folder the one for training, else the one that is named.
std::filesystem::path drawn_split(const std::filesystem::path& folder);

}  // namespace lockstep
