// What a file of ours holds, or weights that another program wrote, in words for people.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep {

// A shard, a manifest (or its folder), a model file, a checkpoint, weights that another program wrote or the folder of
// a training. Throws Error(usage) if the file is missing or none of these, Error(bad_data) if it is damaged.
std::string describe_file(const std::filesystem::path& path);

}  // namespace lockstep
