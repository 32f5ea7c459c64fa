// What a command line asks for instead of work: --help, --help-all or --version. A mistake elsewhere on the line does
// not hide the answer.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

struct HelpRequest {
  enum class Kind : std::uint8_t { version, help, help_all };
  Kind kind = Kind::help;
  std::vector<std::string> groups;  // the words after --help, or in --help=GROUP,GROUP
};

// The request in the words of a command line without the program's name: wherever it is, but before "--". --help-all
// wins over --help, and --help over --version. Nothing if there is none.
std::optional<HelpRequest> help_request(std::span<const std::string> words);

// "--help model optimizer"
std::string request_text(const HelpRequest& request);

// The command of the program that the first of these words names, or the program itself.
const CLI::App& command_in(const CLI::App& app, std::span<const std::string> words);

}  // namespace lockstep
