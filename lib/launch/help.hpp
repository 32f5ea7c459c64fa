// What --help prints: options in groups, wrapped to the width of the terminal. Manual pages and completion are made of
// the same texts.
#pragma once

#include <CLI/App.hpp>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

// An option or an argument as users read about it.
struct OptionText {
  std::vector<std::string> flags;  // "-h", "--help"; empty for an argument
  std::string argument;            // "RUN_FOLDER...", "[FILE...]"; empty for an option
  std::string value;               // "NAME", "EPOCHS..."; empty for a flag
  std::vector<std::string> names;  // the allowed values if they are names
  std::string description;  // help, then in brackets: allowed values unless the help lists them, "required", default
};
OptionText option_text(const CLI::Option& option);

struct OptionGroup {
  std::string heading;
  std::vector<const CLI::Option*> options;
};
// "Arguments" first, then groups in the order of declaration; options without a group are in "Options".
std::vector<OptionGroup> option_groups(const CLI::App& app);

// "[OPTIONS] RUN_FOLDER... COMMAND"
std::string usage_of(const CLI::App& app);

// What --help prints for a program or one of its commands. If it has more than 50 options, only the common ones
// (Field::is_common) and how to see the others. `groups` are the words of --help GROUP: if there are any, only their
// groups. Throws Error(usage) for an unknown group, naming the known ones, unless the word may be an argument.
std::string help_text(const CLI::App& command, std::span<const std::string> groups, int columns);
// What --help-all prints.
std::string full_help_text(const CLI::App& command, int columns);

// "data, augmentation, model": the words that --help takes for the groups.
std::vector<std::string> group_words(const CLI::App& command);

// Width of the terminal at standard output, from 40 to 100 columns; 80 if it is none.
int help_columns();

}  // namespace lockstep
