#include "launch/program_pages.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "backend/versions.hpp"
#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/system_failure.hpp"
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

// The examples of --help: lines after the heading, indented by two spaces.
std::string roff_examples(const CLI::App& app) {
  std::istringstream footer(app.get_footer());
  std::string line;
  std::string text;
  std::getline(footer, line);
  while (std::getline(footer, line)) text += roff(std::string_view(line).substr(2)) + '\n';
  return text.empty() ? "" : ".SH EXAMPLES\n.nf\n" + text + ".fi\n";
}

struct ExitCode {
  Failure code;
  std::string_view meaning;
};
constexpr std::array<ExitCode, 8> exit_codes{
    {{Failure::other, "other failure"},
     {Failure::usage, "wrong option, file name or configuration"},
     {Failure::bad_data, "damaged shard, model file or picture; no intact checkpoint"},
     {Failure::out_of_memory, "out of memory"},
     {Failure::bad_node, "bad node: GPU lost or with memory errors, or found by check_cluster"},
     {Failure::stopped_early, "stopped early, with a checkpoint or before the first step"},
     {Failure::out_of_step, "a rank hung or its weights differ; another job took the folder"},
     {Failure::diverged, "loss is NaN or infinite"}}};

std::string roff_exit_status() {
  std::string text = ".SH EXIT STATUS\nAll programs of Lockstep use the same codes.\n.TP\n0\ndone\n";
  for (const ExitCode& one : exit_codes) {
    text += fmt::format(".TP\n{}\n{}\n", static_cast<int>(one.code), roff(one.meaning));
  }
  return text;
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code reason;
  std::filesystem::create_directories(folder, reason);
  if (!reason) return;
  throw system_failure(fmt::format("cannot create the folder '{}'", folder.string()), reason.value(), Access::writing,
                       "--write-pages");
}

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

std::vector<std::string> all_flags(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    std::ranges::copy(option_text(*option).flags, std::back_inserter(flags));
  }
  return flags;
}

// "auto" and "never" of "auto|never|FILE".
std::vector<std::string> literal_values(const OptionText& option) {
  std::vector<std::string> values = CLI::detail::split(option.value, '|');
  const auto is_capital = [](unsigned char letter) { return std::isupper(letter) != 0; };
  std::erase_if(values, [&](const std::string& value) { return std::ranges::any_of(value, is_capital); });
  return values;
}

// How the value of an option is completed; empty for a flag or an argument.
std::string value_kind(const OptionText& option) {
  if (option.value.empty()) return "";
  const std::vector<std::string> names = option.names.empty() ? literal_values(option) : option.names;
  const bool is_file = option.value.ends_with("|FILE");
  if (!names.empty()) return fmt::format("kind={} names='{}'", is_file ? "names_or_files" : "names", joined(names));
  return takes_folder(option) ? "kind=folder" : "kind=other";
}

// The groups of a program, and its commands.
std::string help_case(const CLI::App& app) {
  std::vector<std::string> words = group_words(app);
  for (const CLI::App* command : app.get_subcommands({})) words.push_back(command->get_name());
  return fmt::format("    -h | --help) kind=names names='{}' ;;\n", joined(words));
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
  std::string text =
      fmt::format(".TH {} 1 \"\" \"Lockstep {}\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.B {}\n{}\n", roff(capitals),
                  lockstep_version(), roff(program), roff(app.get_description()), roff(program), roff(usage_of(app)));
  text += ".SH OPTIONS\n" + roff_groups(app);
  for (const CLI::App* command : app.get_subcommands({})) {
    text += fmt::format(".SH {} {}\n{}.\n{}", roff(capitals), roff(command->get_name()),
                        roff(command->get_description()), roff_groups(*command));
  }
  return text + roff_examples(app) + roff_exit_status();
}

std::string bash_completion(const CLI::App& app, const std::string& program) {
  const std::vector<const CLI::App*> found = app.get_subcommands({});
  std::set<std::string> done;
  std::string values = help_case(app);
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
    names_or_files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -W "$names" -- "$word") ;;
    options) case $word in -* | '') ;; *) [ "$COMP_CWORD" = 1 ] || return ;; esac
      mapfile -t COMPREPLY < <(compgen -W "$names" -- "$word") ;;
  esac
}}
complete -o bashdefault -o default -F _lockstep_{0} {0}
)",
                     program, joined(first), choose, values);
}

std::optional<int> write_pages_if_asked(int argc, char** argv, const std::function<void(CLI::App&)>& declare) {
  if (argc < 2 || argv[1] != std::string_view("--write-pages")) return std::nullopt;
  const std::string program = std::filesystem::path(argv[0]).filename();
  CLI::App app;
  declare_program(app, declare);
  try {
    require(argc == 3 && *argv[2] != '\0', Failure::usage,
            "--write-pages requires one folder, and nothing else. Name the folder for the manual page and completion.");
    const std::filesystem::path folder = argv[2];
    for (const char* below : {"man", "completions"}) make_folder(folder / below);
    write_file_atomically(folder / "man" / (program + ".1"), manual_page(app, program));
    write_file_atomically(folder / "completions" / program, bash_completion(app, program));
  } catch (const Error& error) {
    log::error(error.what());
    return error.exit_code();
  }
  return 0;
}

}  // namespace lockstep
