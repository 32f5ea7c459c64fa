// A program's manual page and its completion in bash, from the declarations that --help is made of.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>

namespace lockstep {

// In roff's man macros, for share/man/man1.
std::string manual_page(const CLI::App& app, const std::string& program);
// For share/bash-completion/completions: options, commands, names that options take, and folders.
std::string bash_completion(const CLI::App& app, const std::string& program);

// What an installation asks of each program, before anything else of it runs: `PROGRAM --write-pages FOLDER` writes
// both below FOLDER. Nothing where it is not asked, else the exit code.
std::optional<int> write_pages_if_asked(int argc, char** argv, const std::function<void(CLI::App&)>& declare);

}  // namespace lockstep
