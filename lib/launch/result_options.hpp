// Options that name a file for a result. No other way declares one: so every program checks all of them before it
// works, and no result replaces another one or a file that the program reads.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <string>

namespace lockstep {

// Throws Error(usage) where a result cannot be written to the file: require_place_for_result() with its kind.
using PlaceCheck = std::function<void(const std::filesystem::path&)>;

// `target` stays empty unless the option is stated.
CLI::Option* add_result(CLI::App& app, const std::string& flag, std::filesystem::path& target,
                        const PlaceCheck& require_place, const std::string& help);

// After parsing, on the rank that writes results. Throws Error(usage) where two results have the same file, or a result
// that of an option or argument of the type FILE, FOLDER or DIR, however the paths are spelled; and what the check of a
// place throws.
void require_places_for_results(CLI::App& app);

}  // namespace lockstep
