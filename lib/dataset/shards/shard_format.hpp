// What writing and reading a shard have in common. Described in data/README.md.
#pragma once

#include <cstdint>

namespace lockstep::shard_format {

inline constexpr const char* images = "images";    // format 1
inline constexpr const char* samples = "samples";  // format 2, and the next two
inline constexpr const char* offsets = "offsets";
inline constexpr const char* sizes = "sizes";
inline constexpr const char* labels = "labels";

}  // namespace lockstep::shard_format
