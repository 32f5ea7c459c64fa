#include "launch/help.hpp"

#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>

#include "base/error.hpp"
#include "base/text/nearest_name.hpp"
#include "recipe/fields.hpp"

namespace lockstep {
namespace {

constexpr std::size_t description_column = 27;

// "full" and "blocks" of "full, blocks".
std::vector<std::string> split_names(const std::string& range) {
  std::vector<std::string> names = CLI::detail::split(range, ',');
  for (std::string& name : names) CLI::detail::trim(name);
  return names;
}

bool holds_word(std::string_view text, std::string_view word) {
  const auto is_part = [&](std::size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '-');
  };
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    if ((at == 0 || !is_part(at - 1)) && !is_part(at + word.size())) return true;
  }
  return false;
}

// "from 0" of "from 0 to 1000000000": a limit that nobody reaches is left out.
std::string without_large_limit(std::string range) {
  for (const std::string_view word : {" and up to ", " to "}) {
    const std::size_t at = range.rfind(word);
    if (at == std::string::npos) continue;
    if (range.size() - at - word.size() >= std::string_view("1000000000").size()) range.resize(at);
    return range == "from 0" || range == "from 1" ? range.substr(5) + " or more" : range;
  }
  return range;
}

// In brackets, before a default that the text itself ends with.
void add_details(std::string& description, const std::vector<std::string>& details) {
  if (details.empty()) return;
  const std::size_t own = description.rfind(" (default: ");
  if (own != std::string::npos && description.ends_with(')')) {
    const bool has_default = details.back().starts_with("default: ");
    if (has_default) {  // the program's own replaces the general one
      description = fmt::format("{} ({})", description.substr(0, own), fmt::join(details, "; "));
    } else {
      description.insert(own + 2, fmt::format("{}; ", fmt::join(details, "; ")));
    }
  } else {
    description += fmt::format(" ({})", fmt::join(details, "; "));
  }
}

std::string name_of_program(const CLI::App& app) {
  const std::string own = std::filesystem::path(app.get_name()).filename();
  const bool is_command = app.get_parent() != nullptr && !app.get_parent()->get_name().empty();
  return is_command ? name_of_program(*app.get_parent()) + " " + own : own;
}

// `text` in lines of at most `columns`, which begin at `indent`; the first one is already `used` columns long.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t used, std::size_t columns) {
  std::string lines;
  bool is_first = true;
  for (const std::string& word : CLI::detail::split(std::string(text), ' ')) {
    if (!is_first && used + 1 + word.size() > columns) {
      lines += '\n' + std::string(indent, ' ');
      used = indent;
      is_first = true;
    }
    lines += (is_first ? "" : " ") + word;
    used += (is_first ? 0 : 1) + word.size();
    is_first = false;
  }
  return lines;
}

std::string entry(const OptionText& option, std::size_t columns) {
  std::string text = "  " + (option.flags.empty() ? option.argument : fmt::format("{}", fmt::join(option.flags, ", ")));
  if (!option.value.empty()) text += " " + option.value;
  if (option.description.empty()) return text + '\n';
  if (text.size() + 2 > description_column) {
    text += '\n' + std::string(description_column, ' ');
  } else {
    text.resize(description_column, ' ');
  }
  return text + wrapped(option.description, description_column, description_column, columns) + '\n';
}

bool is_common(const CLI::Option& option) {
  const std::vector<std::string>& names = option.get_lnames();
  if (names.empty()) return true;
  const auto field = std::ranges::find(training_fields(), names.front(), &Field::name);
  return field == training_fields().end() || field->is_common;
}

std::string head(const CLI::App& app, std::size_t columns) {
  return wrapped(app.get_description(), 0, 0, columns) + "\n\n" +
         wrapped("Usage: " + name_of_program(app) + " " + usage_of(app), 7, 0, columns) + '\n';
}

template <typename IsShown>
std::string groups_text(const CLI::App& app, std::size_t columns, IsShown is_shown) {
  std::string text;
  for (const OptionGroup& group : option_groups(app)) {
    std::string entries;
    for (const CLI::Option* option : group.options) {
      if (is_shown(*option)) entries += entry(option_text(*option), columns);
    }
    if (!entries.empty()) text += fmt::format("\n{}:\n{}", group.heading, entries);
  }
  return text;
}

std::string commands_text(const CLI::App& app, std::size_t columns) {
  std::string text;
  for (const CLI::App* command : app.get_subcommands({})) {
    text += entry({{}, command->get_name(), "", {}, command->get_description()}, columns);
  }
  return text.empty() ? "" : "\nCommands (COMMAND --help lists the options of one):\n" + text;
}

std::string footer(const CLI::App& app) { return app.get_footer().empty() ? "" : '\n' + app.get_footer() + '\n'; }

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char letter) { return std::tolower(letter); });
  return text;
}

// "data, augmentation, model": first words of the headings, which --help shows.
std::string group_word(const OptionGroup& group) { return lower(group.heading.substr(0, group.heading.find(' '))); }

bool is_named(const OptionGroup& group, const std::string& word) {
  return holds_word(lower(group.heading), lower(word));
}

void require_group(const CLI::App& command, const std::vector<OptionGroup>& groups, const std::string& word) {
  const std::vector<std::string> known = group_words(command);
  require(std::ranges::any_of(groups, [&](const OptionGroup& group) { return is_named(group, word); }), Failure::usage,
          "--help: '{}' is not a group of options. {}Known: {}.", word, did_you_mean(word, known),
          fmt::join(known, ", "));
}

bool takes_arguments(const CLI::App& command) {
  return std::ranges::any_of(command.get_options(), [](const CLI::Option* one) { return one->get_positional(); });
}

// Empty if no word names a group.
std::string named_groups_text(const CLI::App& command, std::span<const std::string> words, std::size_t columns) {
  const std::vector<OptionGroup> groups = option_groups(command);
  if (!takes_arguments(command)) {
    for (const std::string& word : words) require_group(command, groups, word);
  }
  std::string text;
  for (const OptionGroup& group : groups) {
    if (std::ranges::none_of(words, [&](const std::string& word) { return is_named(group, word); })) continue;
    text += (text.empty() ? "" : "\n") + group.heading + ":\n";
    for (const CLI::Option* option : group.options) text += entry(option_text(*option), columns);
  }
  return text;
}

}  // namespace

OptionText option_text(const CLI::Option& option) {
  OptionText text;
  if (option.get_positional()) {
    text.argument = option.get_name(true) + (option.get_expected_max() > 1 ? "..." : "");
    if (!option.get_required()) text.argument = "[" + text.argument + "]";
  }
  for (const std::string& name : option.get_snames()) text.flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.flags.push_back("--" + name);
  text.description = option.get_description();
  if (option.get_items_expected_max() == 0) return text;
  const std::string type = option.get_type_name();
  const std::size_t colon = type.rfind(':');
  std::string range = colon == std::string::npos ? "" : type.substr(colon + 1);
  if (!option.get_positional()) {
    text.value = type.substr(0, colon) + (option.get_expected_max() > 1 ? "..." : "");
    if (text.value.starts_with("NAME")) text.names = split_names(range);
  }
  const bool is_listed = !text.names.empty() && std::ranges::all_of(text.names, [&](const std::string& name) {
    return holds_word(text.description, name);
  });
  std::vector<std::string> details;
  const bool is_obvious = text.value.starts_with(range) || range.starts_with("a ") || range.starts_with("an ");
  if (!is_obvious && !is_listed) details.push_back(without_large_limit(std::move(range)));
  if (option.get_required() && !option.get_positional()) details.emplace_back("required");
  const std::string standard = option.get_default_str();
  // An empty list is "[]", and since CLI11 2.4 "{}".
  if (!standard.empty() && standard != "[]" && standard != "{}") details.push_back("default: " + standard);
  add_details(text.description, details);
  return text;
}

std::vector<OptionGroup> option_groups(const CLI::App& app) {
  std::vector<OptionGroup> groups;
  for (const CLI::Option* option : app.get_options()) {
    const std::string heading = option->get_positional() ? "Arguments" : option->get_group();
    auto group = std::ranges::find(groups, heading, &OptionGroup::heading);
    if (group == groups.end()) {
      group = groups.insert(option->get_positional() ? groups.begin() : groups.end(), {heading, {}});
    }
    group->options.push_back(option);
  }
  return groups;
}

std::string usage_of(const CLI::App& app) {
  std::string text = "[OPTIONS]";
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) text += " " + option_text(*option).argument;
  }
  if (!app.get_subcommands({}).empty()) text += " COMMAND [OPTIONS]";
  return text;
}

std::vector<std::string> group_words(const CLI::App& command) {
  std::vector<std::string> words;
  for (const OptionGroup& group : option_groups(command)) words.push_back(group_word(group));
  return words;
}

std::string full_help_text(const CLI::App& command, int columns) {
  const auto width = static_cast<std::size_t>(columns);
  std::string text = head(command, width) + groups_text(command, width, [](const CLI::Option&) { return true; }) +
                     commands_text(command, width) + footer(command);
  text.pop_back();
  return text;
}

std::string help_text(const CLI::App& command, std::span<const std::string> groups, int columns) {
  constexpr std::size_t many = 50;
  const auto width = static_cast<std::size_t>(columns);
  std::string text = named_groups_text(command, groups, width);
  if (text.empty() && command.get_options().size() <= many) return full_help_text(command, columns);
  if (text.empty()) {
    const std::string more = "These are the common options. --help-all lists all options, --help GROUP one group: ";
    text = head(command, width) + '\n' +
           wrapped(fmt::format("{}{}.", more, fmt::join(group_words(command), ", ")), 0, 0, width) + '\n' +
           groups_text(command, width, is_common) + footer(command);
  }
  text.pop_back();
  return text;
}

int help_columns() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return std::clamp<int>(size.ws_col, 40, 100);
}

}  // namespace lockstep
