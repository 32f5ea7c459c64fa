// The splits of a data set, and their folders.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>

#include "base/text/choice.hpp"

namespace lockstep {

// Every data set has `train` and `test`. `validation` is the source's own, or is split off the training samples on
// request.
enum class Split : std::uint8_t { train, validation, test };

inline constexpr std::array<Choice<Split>, 3> splits{
    {{"train", Split::train}, {"validation", Split::validation}, {"test", Split::test}}};

inline const char* split_name(Split split) { return splits.at(static_cast<std::size_t>(split)).name; }
inline std::filesystem::path split_folder(const std::filesystem::path& data, Split split) {
  return data / split_name(split);
}

// Folder of each split.
struct SplitFolders {
  std::array<std::filesystem::path, splits.size()> by_split;

  std::filesystem::path& of(Split split) { return by_split.at(static_cast<std::size_t>(split)); }
  const std::filesystem::path& of(Split split) const { return by_split.at(static_cast<std::size_t>(split)); }
};
// Folders of a data set in the layout that make_shards writes.
inline SplitFolders split_folders(const std::filesystem::path& data) {
  SplitFolders folders;
  for (const Choice<Split>& split : splits) folders.of(split.value) = split_folder(data, split.value);
  return folders;
}

}  // namespace lockstep
