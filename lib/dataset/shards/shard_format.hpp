// What writing and reading a shard have in common. Described in data/README.md.
#pragma once

#include <cstdint>

namespace lockstep::shard_format {

inline constexpr std::int32_t version = 1;
inline constexpr const char* images = "images";
inline constexpr const char* labels = "labels";

}  // namespace lockstep::shard_format
