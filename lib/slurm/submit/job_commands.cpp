#include "slurm/submit/job_commands.hpp"

#include <fmt/format.h>

#include <optional>

#include "base/text/printable.hpp"
#include "slurm/submit/command_words.hpp"

namespace lockstep {
namespace {

constexpr std::string_view opening = "<%";
constexpr std::string_view closing = "%>";

std::string_view without_spaces_around(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

// Normalizes "$data.uri[0]" to "$data.uri.0", as on OpenPAI.
std::string with_dots(std::string_view reference) {
  std::string text;
  for (const char letter : reference) {
    if (letter == '[') {
      text += '.';
    } else if (letter != ']') {
      text += letter;
    }
  }
  return text;
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

void JobCommands::refuse_evaluated(const std::string& reference, int line, std::string_view command) const {
  reader_.refuse(line,
                 fmt::format("the value of '{}' is not allowed in a '{}' command. Bash evaluates the words of this "
                             "command, and could execute the value. Use only letters, digits and ./:@+-_ there",
                             printable(reference), printable(command)));
}

std::string JobCommands::put(const std::string& reference, int line) {
  const References::Value& value = find(reference, line);
  put_.insert(value.variable);
  if (!value.is_secret && is_plain_word(value.text)) return shell_.put(value.text);
  if (shell_.place() != ShellReader::Place::unclear && shell_.command().evaluates()) {
    refuse_evaluated(reference, line, shell_.command().name());
  }
  last_ = reference;
  if (!value.is_secret && shell_.is_split()) return shell_.put_split(value.text);
  if (const std::optional<std::string> text = shell_.put_variable(value.variable)) return *text;
  reader_.refuse(line, fmt::format("the value of '{}' cannot be inserted safely, because the quoting at its place is "
                                   "unclear. Write \"${{{}}}\" instead",
                                   printable(reference), value.variable));
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
    script_ += put(std::string(without_spaces_around(inner)), command.line);
    rest.remove_prefix(end + closing.size());
  }
  shell_.read("\n");
  script_ += '\n';
  if (shell_.command().has_computed_with_value()) refuse_evaluated(last_, command.line, "[[");
}

void JobCommands::check_variables(int line) const {
  if (!shell_.has_evaluated()) return;
  for (const auto& [reference, value] : references_.values) {
    const bool is_used = put_.contains(value.variable) || names_variable(script_, value.variable);
    if (!is_used || !runs_when_evaluated(value.text)) continue;
    reader_.refuse(line, fmt::format("the value of '{}' has '[', followed by '$(', '${{' or a backquote. Bash executes "
                                     "this in arithmetic, which these commands may use. Change the value",
                                     printable(reference)));
  }
}

}  // namespace lockstep
