// How pictures of any size are stored in shards, and which files of a folder are used.
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

// Likely mistakes in a data set, refused unless the user allows them.
enum class Oddity : std::uint8_t {
  one_class,          // there is only one class
  split_names,        // a class is named like a split: "test"
  nested_classes,     // every class folder contains folders and no pictures
  untrained_classes,  // a class has test or validation pictures but no training pictures
  duplicates          // the same picture is in two splits
};
inline constexpr std::array<Choice<Oddity>, 5> oddities{{{"one-class", Oddity::one_class},
                                                         {"split-names", Oddity::split_names},
                                                         {"nested-classes", Oddity::nested_classes},
                                                         {"untrained-classes", Oddity::untrained_classes},
                                                         {"duplicates", Oddity::duplicates}}};

struct PictureStorage {
  SampleStore store = SampleStore::jpeg;  // jpeg or pictures
  std::int64_t side = 256;                // of stored pixels: length of the shorter side after resizing
  std::int64_t longest_side = 0;          // of JPEG: longer sides are scaled down to this; 0: no limit
  int quality = 95;                       // of re-encoded JPEG files, 1 to 100
  bool is_strict = false;                 // damaged or unreadable pictures end the conversion
  bool follows_links = false;             // also out of the folder
  std::vector<std::string> skipped = {};  // files and folders to leave out, relative to the folder
  std::vector<std::string> allowed = {};  // names of the allowed oddities
  // Significant bits of 16-bit PNG samples, if the user stated them (sample_bits.hpp).
  std::optional<std::int64_t> sample_bits = {};
  bool operator==(const PictureStorage&) const = default;

  bool allows(Oddity oddity) const {
    return std::ranges::find(allowed, choice_name(oddities, oddity)) != allowed.end();
  }
};

}  // namespace lockstep
