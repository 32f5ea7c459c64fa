// Paths that the user has named, and the options that named them.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace lockstep {

struct StatedPath {
  std::string option;  // "--floors", or the name of an argument: "MODEL"
  std::filesystem::path path;
  bool is_file = false;  // it names a file, not a folder
};

// Adds the option to a message whose first quoted name is in `paths`, or in a folder of `paths`: "cannot read 'a.json'
// (--floors): No such file or directory". Of options with the same path, the first one that names a file is added to a
// message about that path, otherwise the first one that names a folder. A message that names an option of the path
// stays as it is.
std::string with_option_of_path(std::string message, std::span<const StatedPath> paths);

}  // namespace lockstep
