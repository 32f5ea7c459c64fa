// How pictures of all sizes are to be stored in shards.
#pragma once

#include <cstdint>

#include "dataset/shards/manifest.hpp"

namespace lockstep {

struct PictureStorage {
  SampleStore store = SampleStore::jpeg;  // or pictures
  std::int64_t side = 256;                // of pixels: the shorter side becomes that long
  std::int64_t longest_side = 0;          // of JPEG: longer ones are made smaller; 0: as they are
  int quality = 95;                       // of JPEG that is written anew, 1 to 100
  bool is_strict = false;                 // a file that would be skipped, or is damaged, ends the conversion
  bool follows_links = false;             // out of the folder too
  bool operator==(const PictureStorage&) const = default;
};

}  // namespace lockstep
