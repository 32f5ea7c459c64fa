// Advice in messages about a damaged shard.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace lockstep {

// Name of a folder of staged copies (--stage): "train-0123456789abcdef0123456789abcdef".
std::string staged_folder_name(std::string_view split, const std::string& root_hash);

// Advice for a damaged `shard`: `advice`, or for a staged copy: remove it, so that --stage copies it again.
std::string repair_advice(const std::filesystem::path& shard, std::string_view advice);

}  // namespace lockstep
