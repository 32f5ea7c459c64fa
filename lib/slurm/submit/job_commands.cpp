#include "slurm/submit/job_commands.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/printable.hpp"
#include "slurm/submit/shell_text.hpp"

namespace lockstep {
namespace {

constexpr std::string_view opening = "<%";
constexpr std::string_view closing = "%>";
constexpr std::string_view has_other_characters = "it has more than letters, digits, blanks and -_./:=,@%+~^";

std::string_view without_spaces_around(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

bool has_code(std::string_view text) {
  const auto has = [&](std::string_view code) { return text.find(code) != std::string_view::npos; };
  return has("$(") || has("${") || has("`");
}

// Whether bash expands the contents of variables: ${x@P}, PS4, and the file after '>&', which is not a number.
bool expands_contents(std::string_view script) {
  for (std::size_t at = script.find(">&"); at != script.npos; at = script.find(">&", at + 1)) {
    const std::size_t begin = std::min(script.find_first_not_of(" \t", at + 2), script.size());
    const std::size_t end = script.find_first_not_of("-0123456789", begin);
    const bool is_number = end == script.npos || std::string_view(" \t\n;&|<>)").find(script[end]) != script.npos;
    if (end == begin || !is_number) return true;
  }
  const auto has = [&](std::string_view text) { return script.find(text) != script.npos; };
  return has("@P") || has("PS4=") || has("BASH_ENV=");
}

}  // namespace

const References::Value& JobCommands::find(const std::string& reference, int line) const {
  const auto found = references_.values.find(with_dots(reference));
  if (found != references_.values.end()) return found->second;
  const std::string beginning = with_dots(reference) + ".";
  const auto within = references_.values.lower_bound(beginning);
  if (within != references_.values.end() && within->first.starts_with(beginning)) {
    reader_.refuse(line,
                   fmt::format("a command refers to '{}', which has several values. Name one of them, such as '{}'",
                               printable(reference), within->first));
  }
  reader_.refuse(line, fmt::format("a command refers to '{}', which the file does not define", printable(reference)));
}

std::string JobCommands::text_of(const std::string& reference, int line) {
  const References::Value& value = find(reference, line);
  const bool is_plain = is_plain_text(value.text);
  if (is_plain && !value.is_secret) return value.text;
  const ShellReader::Place place = shell_.place();
  const WordUse use = is_plain ? WordUse::reads : shell_.use();
  const bool may_run = place == ShellReader::Place::other || use == WordUse::unknown;
  const bool has_quotes = place == ShellReader::Place::double_quotes;
  const std::string variable = "${" + value.variable + "}";
  if (!may_run && (has_quotes || value.is_secret)) {
    if (!is_plain) put_.push_back({reference, use});
    if (has_quotes) return variable;
    return place == ShellReader::Place::unquoted ? "\"" + variable + "\"" : "'\"" + variable + "\"'";
  }
  const bool is_several_words = place == ShellReader::Place::unquoted && !has_code(value.text) &&
                                value.text.find_first_of(" \t\n") != std::string::npos;
  std::string_view where = "here, because a shell may run it";
  std::string_view advice = ", in a command that does not run it";
  if (!may_run) advice = "";
  if (is_several_words) advice = " if it is one word, else write its words into the command itself";
  if (!may_run || is_several_words) where = "outside double quotes";
  reader_.refuse(
      line, fmt::format("the value of '{}' cannot stand {}: {}. Write \"${}\" instead{}", printable(reference), where,
                        is_plain ? "it is a secret" : has_other_characters, value.variable, advice));
}

void JobCommands::add(const YamlValue& command) {
  std::string_view rest = reader_.text(command, "a command");
  while (true) {
    const std::size_t begin = rest.find(opening);
    const std::string_view before = rest.substr(0, begin);
    shell_.read(before);
    script_ += before;
    if (begin == std::string_view::npos) break;
    const std::size_t end = rest.find(closing, begin);
    if (end == std::string_view::npos) reader_.refuse(command.line, "a command has '<%' without '%>'");
    const std::string_view inner = rest.substr(begin + opening.size(), end - begin - opening.size());
    const std::string text = text_of(std::string(without_spaces_around(inner)), command.line);
    shell_.read(text);
    script_ += text;
    rest.remove_prefix(end + closing.size());
  }
  shell_.read("\n");
  script_ += '\n';
}

void JobCommands::check_output(int line) const {
  for (const Put& put : put_) {
    const bool is_stored = put.use == WordUse::stores && shell_.has_unknown_commands();
    if (!is_stored && !shell_.may_run_output()) continue;
    const std::string_view who =
        is_stored ? "another command may run this variable" : "a command after a '|' may run it";
    reader_.refuse(line,
                   fmt::format("the value of '{}' cannot stand in {}, because {}: {}. Write \"${}\" instead, if none "
                               "does",
                               printable(put.reference), is_stored ? "a variable" : "these commands", who,
                               has_other_characters, find(put.reference, line).variable));
  }
}

// Any arithmetic runs the $(...) of x[$(...)]. The value may be reached through another one's text or contents, and the
// commands may put it into a subscript, so it counts whether or not the commands name it.
void JobCommands::check_variables(int line) const {
  check_output(line);
  if (!shell_.has_evaluated() && !expands_contents(script_)) return;
  for (const auto& [reference, value] : references_.values) {
    if (!has_code(value.text)) continue;
    reader_.refuse(line, fmt::format("the value of '{}' has '$(', '${{' or a backquote. Bash executes this in tests, "
                                     "arithmetic, subscripts and after '>&', and these commands have some. Change the "
                                     "value",
                                     printable(reference)));
  }
}

}  // namespace lockstep
