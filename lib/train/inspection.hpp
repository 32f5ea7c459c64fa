// Describes files of this suite, and weights of other programs, as text for people.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep {

// Describes a shard, a manifest (or its folder), the folder of a data set (each split), a model file, a checkpoint,
// weights of another program, or the folder of a training. Throws Error(usage) if the file is missing or none of these,
// Error(bad_data) if it is damaged.
std::string describe_file(const std::filesystem::path& path);

// The split whose pictures are shown: the training split if `folder` is a data set, otherwise `folder` itself.
std::filesystem::path drawn_split(const std::filesystem::path& folder);

}  // namespace lockstep
