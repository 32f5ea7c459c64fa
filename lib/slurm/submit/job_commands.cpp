#include "slurm/submit/job_commands.hpp"

#include <fmt/format.h>

#include <optional>

#include "base/text/printable.hpp"

namespace lockstep {
namespace {

constexpr std::string_view opening = "<%";
constexpr std::string_view closing = "%>";

std::string_view without_spaces_around(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

}  // namespace

std::string JobCommands::put(const std::string& reference, int line) {
  const auto found = references_.values.find(reference);
  if (found == references_.values.end()) {
    reader_.refuse(line, fmt::format("a command refers to '{}', which the file does not define", printable(reference)));
  }
  const References::Value& value = found->second;
  if (!value.is_secret && is_plain_word(value.text)) return shell_.put(value.text);
  if (const std::optional<std::string> text = shell_.put_variable(value.variable)) return *text;
  reader_.refuse(
      line, fmt::format("the value of '{}' cannot be put behind what the commands hold before it (a shell would read "
                        "something into it, and its quoting there cannot be told). Write \"${{{}}}\" in its place",
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
}

}  // namespace lockstep
