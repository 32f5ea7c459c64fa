#include "launch/program_pages.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <string_view>
#include <vector>

#include "backend/versions.hpp"
#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "launch/help.hpp"
#include "launch/parse.hpp"

namespace lockstep {
namespace {

// Escapes text so that roff shows it literally.
std::string roff(std::string_view text) {
  std::string escaped;
  if (text.starts_with('.') || text.starts_with('\'')) escaped = "\\&";
  for (const char letter : text) {
    if (letter == '\\')
      escaped += "\\e";
    else if (letter == '-')
      escaped += "\\-";
    else if (letter == '\n')
      escaped += ' ';
    else
      escaped += letter;
  }
  return escaped;
}

bool takes_folder(const OptionText& option) { return option.value == "FOLDER" || option.value == "DIR"; }

std::string roff_entry(const OptionText& option) {
  const std::string name = option.flags.empty() ? option.argument : fmt::format("{}", fmt::join(option.flags, ", "));
  std::string text = fmt::format(".TP\n\\fB{}\\fR", roff(name));
  if (!option.value.empty()) text += fmt::format(" \\fI{}\\fR", roff(option.value));
  return text + fmt::format("\n{}.\n", roff(option.description));
}

std::string roff_groups(const CLI::App& app) {
  std::string text;
  for (const OptionGroup& group : option_groups(app)) {
    text += fmt::format(".SS {}\n", roff(group.heading));
    for (const CLI::Option* option : group.options) text += roff_entry(option_text(*option));
  }
  return text;
}

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

std::vector<std::string> all_flags(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    std::ranges::copy(option_text(*option).flags, std::back_inserter(flags));
  }
  return flags;
}

// How the value of an option is completed; empty for a flag or an argument.
std::string value_kind(const OptionText& option) {
  if (option.value.empty()) return "";
  if (!option.names.empty()) return fmt::format("kind=names names='{}'", joined(option.names));
  return takes_folder(option) ? "kind=folder" : "kind=other";
}

// A case for each option that takes a value. If several commands have the option, the first one counts.
void add_value_cases(const CLI::App& app, std::set<std::string>& done, std::string& text) {
  for (const CLI::Option* declared : app.get_options()) {
    const OptionText option = option_text(*declared);
    const std::string kind = value_kind(option);
    if (kind.empty()) continue;
    for (const std::string& flag : option.flags) {
      if (done.insert(flag).second) text += fmt::format("    {}) {} ;;\n", flag, kind);
    }
  }
}

}  // namespace

std::string manual_page(const CLI::App& app, const std::string& program) {
  std::string capitals = program;
  std::ranges::transform(capitals, capitals.begin(), [](unsigned char letter) { return std::toupper(letter); });
  std::string text = fmt::format(".TH {} 1 \"\" \"Lockstep {}\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.B {}\n{}\n",
                                 roff(capitals), library_versions().front().version, roff(program),
                                 roff(app.get_description()), roff(program), roff(usage_of(app)));
  text += ".SH OPTIONS\n" + roff_groups(app);
  for (const CLI::App* command : app.get_subcommands({})) {
    text += fmt::format(".SH {} {}\n{}.\n{}", roff(capitals), roff(command->get_name()),
                        roff(command->get_description()), roff_groups(*command));
  }
  return text;
}

std::string bash_completion(const CLI::App& app, const std::string& program) {
  const std::vector<const CLI::App*> found = app.get_subcommands({});
  std::set<std::string> done;
  std::string values;
  std::string commands;
  std::vector<std::string> first = all_flags(app);
  add_value_cases(app, done, values);
  for (const CLI::App* command : found) {
    first.push_back(command->get_name());
    commands += fmt::format("      {}) names='{}' ;;\n", command->get_name(), joined(all_flags(*command)));
    add_value_cases(*command, done, values);
  }
  const std::string choose = commands.empty() ? ""
                                              : fmt::format(R"(  for one in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case $one in
{}    esac
  done
)",
                                                            commands);
  return fmt::format(R"(# Completion of {0} in bash, which {0} wrote.
_lockstep_{0}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} kind=options names='{1}' one
  [ "$word" = = ] && word=''
  [ "$before" = = ] && before=${{COMP_WORDS[COMP_CWORD-2]}}
{2}  case $before in
{3}  esac
  COMPREPLY=()
  case $kind in
    folder) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
    names) mapfile -t COMPREPLY < <(compgen -W "$names" -- "$word") ;;
    options) case $word in -* | '') ;; *) [ "$COMP_CWORD" = 1 ] || return ;; esac
      mapfile -t COMPREPLY < <(compgen -W "$names" -- "$word") ;;
  esac
}}
complete -o bashdefault -o default -F _lockstep_{0} {0}
)",
                     program, joined(first), choose, values);
}

std::optional<int> write_pages_if_asked(int argc, char** argv, const std::function<void(CLI::App&)>& declare) {
  if (argc != 3 || argv[1] != std::string_view("--write-pages")) return std::nullopt;
  const std::string program = std::filesystem::path(argv[0]).filename();
  const std::filesystem::path folder = argv[2];
  CLI::App app;
  declare_program(app, declare);
  try {
    for (const char* below : {"man", "completions"}) std::filesystem::create_directories(folder / below);
    write_file_atomically(folder / "man" / (program + ".1"), manual_page(app, program));
    write_file_atomically(folder / "completions" / program, bash_completion(app, program));
  } catch (const std::exception& error) {
    log::error(error.what());
    return static_cast<int>(Failure::other);
  }
  return 0;
}

}  // namespace lockstep
