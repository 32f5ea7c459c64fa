// How pictures of all sizes are to be stored in shards, and which of a folder's files are to be taken.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/text/choice.hpp"
#include "dataset/shards/manifest.hpp"

namespace lockstep {

// What looks like a mistake in a data set and is refused unless the user allows it.
enum class Oddity : std::uint8_t {
  one_class,          // there is one class
  split_names,        // a class is called like a split: "test"
  nested_classes,     // every class folder holds folders and no pictures
  untrained_classes,  // a class has test or validation pictures and no training pictures
  duplicates          // the same picture is in two splits
};
inline constexpr std::array<Choice<Oddity>, 5> oddities{{{"one-class", Oddity::one_class},
                                                         {"split-names", Oddity::split_names},
                                                         {"nested-classes", Oddity::nested_classes},
                                                         {"untrained-classes", Oddity::untrained_classes},
                                                         {"duplicates", Oddity::duplicates}}};

struct PictureStorage {
  SampleStore store = SampleStore::jpeg;  // or pictures
  std::int64_t side = 256;                // of pixels: the shorter side becomes that long
  std::int64_t longest_side = 0;          // of JPEG: longer ones are made smaller; 0: as they are
  int quality = 95;                       // of JPEG that is written anew, 1 to 100
  bool is_strict = false;                 // a file that would be skipped, or is damaged, ends the conversion
  bool follows_links = false;             // out of the folder too
  std::vector<std::string> skipped = {};  // files and folders to leave out, relative to the folder
  std::vector<std::string> allowed = {};  // names of oddities
  // Significant bits of 16-bit PNG samples, as a user states them (sample_bits.hpp).
  std::optional<std::int64_t> sample_bits = {};
  bool operator==(const PictureStorage&) const = default;

  bool allows(Oddity oddity) const {
    return std::ranges::find(allowed, choice_name(oddities, oddity)) != allowed.end();
  }
};

}  // namespace lockstep
