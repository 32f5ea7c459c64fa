// The command line: options, --help, --version, and words for what is wrong.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/same_on_ranks.hpp"

namespace lockstep {

// What every program declares, and what `declare` does.
void declare_program(CLI::App& app, const std::function<void(CLI::App&)>& declare);

// What the ranks of a job do together while they parse. The defaults are those of a program without ranks.
struct ParsingRanks {
  int rank = 0;
  // Collective. Throws on all ranks where the values are not the same on all of them.
  std::function<void(const std::vector<RankValue>&)> compare = [](const std::vector<RankValue>&) {};
  // Collective. Runs the check on the rank that writes results, and throws on all ranks what it throws.
  std::function<void(const std::function<void()>&)> on_writer = [](const std::function<void()>& check) { check(); };
};

// Parses after `declare` has stated the options. Returns nothing when the program may go on, else the exit code:
// 0 after --help or --version, 2 after a mistake. Rank 0 prints and reports. Ranks whose launcher gave them command
// lines of their own may differ in what their nodes have (--data, --stage, --output, --threads, --loader-threads) and
// in nothing else. Throws as require_places_for_results().
std::optional<int> parse_options(int argc, char** argv, const std::function<void(CLI::App&)>& declare,
                                 const ParsingRanks& ranks = {});

// What is wrong with a command line, in one sentence, and what was meant where that can be told: the right name of a
// misspelt option or command, and of other programs' options. `error` is what parsing with `app` threw.
std::string usage_error_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace lockstep
