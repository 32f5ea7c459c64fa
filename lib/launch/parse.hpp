// The command line: options, --help, --version, and words for what is wrong.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>

namespace lockstep {

// Parses after `declare` has stated the options. Returns nothing when the program may go on, else the exit code:
// 0 after --help or --version, 2 after a mistake. `rank` 0 prints and reports; every rank comes to the same result.
std::optional<int> parse_options(int argc, char** argv, const std::function<void(CLI::App&)>& declare, int rank);

// The option of `app` (or of the sub-commands in use) nearest to `word`, by edits; empty if none is near.
std::string nearest_option(const CLI::App& app, const std::string& word);

}  // namespace lockstep
