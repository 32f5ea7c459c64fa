#include "dataset/shards/repair_advice.hpp"

namespace lockstep {
namespace {

constexpr std::size_t root_hash_digits = 32;
constexpr std::string_view hexadecimal = "0123456789abcdef";

bool is_folder_of_copies(const std::string& name) {
  const std::size_t gap = name.rfind('-');
  return gap != std::string::npos && gap > 0 && name.size() - gap - 1 == root_hash_digits &&
         name.find_first_not_of(hexadecimal, gap + 1) == std::string::npos;
}

}  // namespace

std::string staged_folder_name(std::string_view split, const std::string& root_hash) {
  return std::string(split) + '-' + root_hash;
}

std::string repair_advice(const std::filesystem::path& shard, std::string_view advice) {
  const bool is_copy = is_folder_of_copies(shard.parent_path().filename().string());
  return std::string(is_copy ? "Remove this copy. --stage then copies the shard again." : advice);
}

}  // namespace lockstep
