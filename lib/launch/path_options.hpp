// Options and arguments that name files or folders.
#pragma once

#include <CLI/App.hpp>
#include <vector>

#include "base/text/stated_path.hpp"

namespace lockstep {

// Whether the type of the value in --help is FILE, FOLDER, DIR or PATH.
bool names_path(const CLI::Option& option);

// Call after the declaration. Makes an empty name a usage error: it usually comes from an unset shell variable, and
// would mean the working directory. Options with a check of their own keep that check.
void refuse_empty_paths(CLI::App& app);

// The paths on the command line after parsing, also those of the command in use.
std::vector<StatedPath> stated_paths(const CLI::App& app);

}  // namespace lockstep
