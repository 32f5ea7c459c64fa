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

// "NAME" and "full, blocks" of "NAME:full, blocks".
struct ValueText {
  std::string type;
  std::string range;
};
ValueText describe_value(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return {};
  const std::string words = option.get_type_name();
  const std::size_t colon = words.find(':');
  return {words.substr(0, colon), colon == std::string::npos ? "" : words.substr(colon + 1)};
}

std::vector<std::string> names_taken(const CLI::Option& option) {
  const ValueText words = describe_value(option);
  return words.type == "NAME" && !words.range.empty() ? CLI::detail::split(words.range, ',')
                                                      : std::vector<std::string>();
}

bool takes_folder(const CLI::Option& option) {
  const std::string type = describe_value(option).type;
  return type == "FOLDER" || type == "DIR";
}

std::vector<std::string> flags_of(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const std::string& name : option.get_snames()) flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flags.push_back("--" + name);
  return flags;
}

std::string roff_entry(const CLI::Option& option) {
  const ValueText words = describe_value(option);
  const bool is_positional = option.get_positional();
  const std::string name = is_positional ? option.get_name(true) : fmt::format("{}", fmt::join(flags_of(option), ", "));
  std::string text = fmt::format(".TP\n\\fB{}\\fR", roff(name));
  if (!words.type.empty() && !is_positional) text += fmt::format(" \\fI{}\\fR", roff(words.type));
  text += fmt::format("\n{}.", roff(option.get_description()));
  if (!words.range.empty()) text += fmt::format(" Values: {}.", roff(words.range));
  if (!option.get_default_str().empty()) text += fmt::format(" Default: {}.", roff(option.get_default_str()));
  if (option.get_required()) text += " Required.";
  return text + '\n';
}

std::string roff_entries(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) text += roff_entry(*option);
  return text;
}

std::string synopsis(const CLI::App& app, const std::string& name) {
  std::string text = fmt::format(".B {}\n[\\fIOPTIONS\\fR]", roff(name));
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) text += fmt::format(" \\fI{}\\fR", roff(argument_usage(*option)));
  }
  if (!app.get_subcommands({}).empty()) text += R"( \fICOMMAND\fR [\fIOPTIONS\fR])";
  return text + '\n';
}

std::string words_of_list(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

std::vector<std::string> all_flags(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) std::ranges::copy(flags_of(*option), std::back_inserter(flags));
  return flags;
}

// How an option's value is completed; empty for a flag.
std::string value_kind(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0 || option.get_positional()) return "";
  const std::vector<std::string> names = names_taken(option);
  if (!names.empty()) return fmt::format("kind=names names='{}'", words_of_list(names));
  return takes_folder(option) ? "kind=folder" : "kind=other";
}

// Adds a case for each option that takes a value. If several commands have the option, the first one's case counts.
void add_value_cases(const CLI::App& app, std::set<std::string>& told, std::string& text) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string kind = value_kind(*option);
    if (kind.empty()) continue;
    for (const std::string& flag : flags_of(*option)) {
      if (told.insert(flag).second) text += fmt::format("    {}) {} ;;\n", flag, kind);
    }
  }
}

}  // namespace

std::string manual_page(const CLI::App& app, const std::string& program) {
  std::string capitals = program;
  std::ranges::transform(capitals, capitals.begin(), [](unsigned char letter) { return std::toupper(letter); });
  std::string text = fmt::format(".TH {} 1 \"\" \"Lockstep {}\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}", roff(capitals),
                                 library_versions().front().version, roff(program), roff(app.get_description()),
                                 synopsis(app, program));
  text += ".SH OPTIONS\n" + roff_entries(app);
  for (const CLI::App* command : app.get_subcommands({})) {
    text += fmt::format(".SH {} {}\n{}.\n{}", roff(capitals), roff(command->get_name()),
                        roff(command->get_description()), roff_entries(*command));
  }
  return text;
}

std::string bash_completion(const CLI::App& app, const std::string& program) {
  const std::vector<const CLI::App*> found = app.get_subcommands({});
  std::set<std::string> told;
  std::string values;
  std::string commands;
  std::vector<std::string> first = all_flags(app);
  add_value_cases(app, told, values);
  for (const CLI::App* command : found) {
    first.push_back(command->get_name());
    commands += fmt::format("      {}) names='{}' ;;\n", command->get_name(), words_of_list(all_flags(*command)));
    add_value_cases(*command, told, values);
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
                     program, words_of_list(first), choose, values);
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
