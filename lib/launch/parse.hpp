// Parses command lines: options, --help, --version and error messages.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/same_on_ranks.hpp"

namespace lockstep {

// Declares what every program has, then calls `declare`.
void declare_program(CLI::App& app, const std::function<void(CLI::App&)>& declare);

// Collective operations of a job's ranks during parsing. The defaults are for a program without ranks.
struct ParsingRanks {
  int rank = 0;
  // Collective. Throws on all ranks if the values differ between ranks.
  std::function<void(const std::vector<RankValue>&)> compare = [](const std::vector<RankValue>&) {};
  // Collective. Runs the check on the rank that writes results; all ranks throw what it throws.
  std::function<void(const std::function<void()>&)> on_writer = [](const std::function<void()>& check) { check(); };
};

// Parses the command line after `declare` has declared the options. Returns nullopt if the program continues, else the
// exit code: 0 after a HelpRequest, 2 after a usage error. Rank 0 prints and reports. If the launcher gave ranks their
// own command lines, only node-specific options may differ: --data, --stage, --output, --threads and --loader-threads.
// Later failures name the options of paths (launch/current_failure.hpp). Throws what require_places_for_results()
// throws.
std::optional<int> parse_options(int argc, char** argv, const std::function<void(CLI::App&)>& declare,
                                 const ParsingRanks& ranks = {});

// Describes a command-line error in one sentence. If possible, suggests the intended name: for a misspelled option or
// command, or for another program's option. `error` is what parsing with `app` threw.
std::string usage_error_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace lockstep
