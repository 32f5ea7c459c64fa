// The splits of a data set, and the folders that hold them.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>

#include "base/text/choice.hpp"

namespace lockstep {

// `validation` is taken off the published training samples, where it was asked for; a data set has the other two.
enum class Split : std::uint8_t { train, validation, test };

inline constexpr std::array<Choice<Split>, 3> splits{
    {{"train", Split::train}, {"validation", Split::validation}, {"test", Split::test}}};

inline const char* split_name(Split split) { return splits.at(static_cast<std::size_t>(split)).name; }
inline std::filesystem::path split_folder(const std::filesystem::path& data, Split split) {
  return data / split_name(split);
}

}  // namespace lockstep
