// Options and arguments that name files or folders.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

// Whether the type of the value in --help is FILE, FOLDER, DIR or PATH.
bool names_path(const CLI::Option& option);

// Call after the declaration. Makes an empty name a usage error: it usually comes from an unset shell variable, and
// would mean the working directory. Options with a check of their own keep that check.
void refuse_empty_paths(CLI::App& app);

struct StatedPath {
  std::string option;  // "--floors", or the name of an argument: "MODEL"
  std::filesystem::path path;
  bool is_file = false;  // it names a file, not a folder
};
// The paths on the command line after parsing, also those of the command in use.
std::vector<StatedPath> stated_paths(const CLI::App& app);

// Adds the option to a message whose first quoted name is in `paths`, or in a folder of `paths`: "cannot read 'a.json'
// (--floors): No such file or directory". Of options with the same path, the first one that names a file is added to a
// message about that path, otherwise the first one that names a folder. A message that names an option of the path
// stays as it is.
std::string with_option_of_path(std::string message, std::span<const StatedPath> paths);

}  // namespace lockstep
