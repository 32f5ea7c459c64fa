// Options that name an output file. All such options use these functions. So every program checks all output files
// before it works, and no result overwrites another one or an input file.
#pragma once

#include <CLI/App.hpp>
#include <filesystem>
#include <functional>
#include <string>

namespace lockstep {

// require_place_for_result() for the file's kind. Throws Error(usage) if a result cannot be written to the file.
using PlaceCheck = std::function<void(const std::filesystem::path&)>;

// `target` stays empty unless the option is given.
CLI::Option* add_result(CLI::App& app, const std::string& flag, std::filesystem::path& target,
                        const PlaceCheck& require_place, const std::string& help);

// Call it when all options are parsed. Throws Error(usage) if two results have the same file, or if a result has the
// file of an option or argument that names_path(). Paths are compared by file, not by spelling.
void require_distinct_files(CLI::App& app);
// Call it after parsing, on the rank that writes results. Throws as require_distinct_files(), and what the PlaceChecks
// throw.
void require_places_for_results(CLI::App& app);

}  // namespace lockstep
