// Names of HDF5 datasets, shared by the writer and the reader of shards. data/README.md documents the format.
#pragma once

#include <cstdint>

namespace lockstep::shard_format {

inline constexpr const char* images = "images";    // format 1
inline constexpr const char* samples = "samples";  // this and the next two: format 2
inline constexpr const char* offsets = "offsets";
inline constexpr const char* sizes = "sizes";
inline constexpr const char* labels = "labels";

}  // namespace lockstep::shard_format
