// Generates a program's manual page and bash completion from its option declarations.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <optional>
#include <string>

namespace lockstep {

// A manual page in roff's man macros, for share/man/man1.
std::string manual_page(const CLI::App& app, const std::string& program);
// A script for share/bash-completion/completions: completes options, commands, named choices and folders.
std::string bash_completion(const CLI::App& app, const std::string& program);

// Handles `PROGRAM --write-pages FOLDER`, which the installation runs: writes both files below FOLDER. Call it before
// anything else in the program. Returns nullopt if this option does not come first, else the exit code.
std::optional<int> write_pages_if_asked(int argc, char** argv, const std::function<void(CLI::App&)>& declare);

}  // namespace lockstep
