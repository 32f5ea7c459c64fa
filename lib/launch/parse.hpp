// The command line: options, --help, --version, and words for what is wrong.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>

namespace lockstep {

// What every program declares, and what `declare` does.
void declare_program(CLI::App& app, const std::function<void(CLI::App&)>& declare);

// Parses after `declare` has stated the options. Returns nothing when the program may go on, else the exit code:
// 0 after --help or --version, 2 after a mistake. `rank` 0 prints and reports; every rank comes to the same result.
// `on_writer` then makes the rank that writes results run require_places_for_results(): it throws what that throws.
std::optional<int> parse_options(int argc, char** argv, const std::function<void(CLI::App&)>& declare, int rank,
                                 const std::function<void(const std::function<void()>&)>& on_writer);

// What is wrong with a command line, in one sentence, and what was meant where that can be told: the right name of a
// misspelt option or command, and of other programs' options. `error` is what parsing with `app` threw.
std::string mistake_words(const CLI::App& app, const CLI::ParseError& error);

}  // namespace lockstep
