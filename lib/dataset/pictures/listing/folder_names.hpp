// Interprets names of files and folders: splits, containers, system files, and names that look alike.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "dataset/split.hpp"

namespace lockstep {

// "Training" and "test_images" are splits with an empty stem; "seg_train" and "seg_test" have the stem "seg".
struct SplitName {
  Split split;
  std::string stem;
};
// std::nullopt if the name contains no split or two splits. Case-insensitive.
std::optional<SplitName> split_name_of(std::string_view folder);

// Whether a folder's name is a generic name for a container of pictures: "images", "JPEG", "unknown".
bool is_container_name(std::string_view folder);

// Whether operating or storage systems create files or folders with this name: "@eaDir", "Thumbs.db". Hidden names are
// not checked here.
bool is_system_name(std::string_view name);

// False if the name has the extension of a text, table or archive: "notes.txt". Once a file is read, its first bytes
// decide instead.
bool may_be_picture(std::string_view file);

// The name in lower case, with a placeholder for each letter that is not ASCII or has combining marks. Names that look
// alike have the same result; the reverse does not hold.
std::string look_of(std::string_view name);
// Whether two names differ only in the case of ASCII letters, or possibly only in Unicode normalization.
bool look_alike(std::string_view a, std::string_view b);

// The name in quotes and, if it is not ASCII, also as bytes: 'café' (bytes 'caf\xc3\xa9').
std::string quoted_with_bytes(std::string_view name);

// A sentence, with a trailing space, that points to an entry of `known` that looks like `name`, so that the two can be
// told apart. Empty if there is none.
std::string look_alike_hint(std::string_view name, std::span<const std::string> known);

}  // namespace lockstep
