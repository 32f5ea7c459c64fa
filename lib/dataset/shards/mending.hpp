// What a sentence on a damaged shard advises.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace lockstep {

// The name of a folder of copies that --stage makes: "train-0123456789abcdef0123456789abcdef".
std::string staged_folder_name(std::string_view split, const std::string& root_hash);

// What to do about `shard`: the sentence `advice`, unless it lies in a folder of copies, which are made again.
std::string mending(const std::filesystem::path& shard, std::string_view advice);

}  // namespace lockstep
