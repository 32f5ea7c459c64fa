// What names of files and folders say: splits, containers, storage systems, names that look alike.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "dataset/split.hpp"

namespace lockstep {

// "Training" and "test_images" are splits with an empty stem; "seg_train" and "seg_test" are splits with the stem
// "seg".
struct SplitName {
  Split split;
  std::string stem;
};
// None where the name says no split or two of them. Case does not matter.
std::optional<SplitName> split_name_of(std::string_view folder);

// Whether a folder's name says only that it holds pictures: "images", "JPEG", "unknown".
bool is_container_name(std::string_view folder);

// Whether operating or storage systems make files and folders of this name: "@eaDir", "Thumbs.db". Hidden ones are not
// looked at.
bool is_system_name(std::string_view name);

// False where the name ends like that of a text, table or archive: "notes.txt". Files are judged by their first bytes
// when they are read; until then this counts them.
bool may_be_picture(std::string_view file);

// The name in lower case, with a placeholder for each letter that is not ASCII or has combining marks. Names that look
// alike have the same look; the reverse does not hold.
std::string look_of(std::string_view name);
// Whether two names differ in the case of ASCII letters alone, or may differ in Unicode normalisation alone.
bool look_alike(std::string_view a, std::string_view b);

// In quotes and, where not all is ASCII, also as bytes: 'café' (bytes 'caf\xc3\xa9').
std::string quoted_with_bytes(std::string_view name);

// Empty, or a sentence and a space on one of `known` that looks like `name`, so that the two can be told apart.
std::string look_alike_hint(std::string_view name, std::span<const std::string> known);

}  // namespace lockstep
