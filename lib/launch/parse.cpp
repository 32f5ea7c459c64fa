#include "launch/parse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include "backend/versions.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "runtime/failure/failure_report.hpp"

namespace lockstep {
namespace {

// Insertions, deletions and substitutions from one word to the other (Levenshtein 1966).
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (const char letter : a) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (letter == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::string versions_text() {
  std::string text;
  for (const LibraryVersion& version : library_versions()) {
    text += fmt::format("{}{:<14} {}", text.empty() ? "" : "\n", version.name, version.version);
  }
  return text;
}

// CLI11 would read whatever stands after a flag: --tf32=0x1 for yes, --tf32=on-the-gpu for nothing at all.
void refuse_values_of_flags(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) option->disable_flag_override();
  }
  for (CLI::App* command : app.get_subcommands({})) refuse_values_of_flags(*command);
}

// CLI11's words without the stop at the end; ours where its own are hard to understand.
std::string words_of(const CLI::ParseError& error) {
  constexpr std::string_view flag_with_value = " was given a disallowed flag override";
  constexpr std::string_view without_value = ": 1 required ";
  std::string_view words = error.what();
  words = words.substr(0, words.find_last_not_of(". \n") + 1);
  if (words.ends_with(flag_with_value)) {
    return fmt::format("--{} takes no value", words.substr(0, words.size() - flag_with_value.size()));
  }
  const std::size_t at = words.find(without_value);
  if (at != std::string_view::npos && words.ends_with(" missing")) {
    return fmt::format("{} wants a value", words.substr(0, at));
  }
  return std::string(words);
}

// CLI11's words end where ours go on.
std::string mistake(const CLI::App& app, const CLI::ParseError& error) {
  const auto* const extra = dynamic_cast<const CLI::ExtrasError*>(&error);
  if (extra == nullptr) return fmt::format("{}. See --help.", words_of(error));
  const std::vector<std::string> words = app.remaining(true);
  const std::string word = words.empty() ? "" : words.front().substr(0, words.front().find('='));
  const std::string nearest = nearest_option(app, word);
  return fmt::format("unknown {} '{}'. {}See --help.", word.starts_with('-') ? "option" : "argument", word,
                     nearest.empty() ? "" : fmt::format("Did you mean {}? ", nearest));
}

}  // namespace

std::string nearest_option(const CLI::App& app, const std::string& word) {
  if (!word.starts_with('-')) return "";
  std::string nearest;
  std::size_t fewest = std::max<std::size_t>(3, word.size() / 2);
  std::vector<const CLI::App*> apps = {&app};
  for (const CLI::App* command : app.get_subcommands()) apps.push_back(command);
  for (const CLI::App* one : apps) {
    for (const CLI::Option* option : one->get_options()) {
      if (option->get_lnames().empty()) continue;
      const std::string name = "--" + option->get_lnames().front();
      const std::size_t edits = edits_between(word, name);
      if (edits >= fewest) continue;
      fewest = edits;
      nearest = name;
    }
  }
  return nearest;
}

std::optional<int> parse_options(int argc, char** argv, const std::function<void(CLI::App&)>& declare, int rank) {
  CLI::App app;
  app.option_defaults()->always_capture_default();
  app.set_version_flag("--version", versions_text, "Print the versions of the program and of every library");
  app.get_formatter()->column_width(34);
  declare(app);
  refuse_values_of_flags(app);
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    log::plain(app.help());
    return 0;
  } catch (const CLI::Success& asked) {
    log::plain(asked.what());
    return 0;
  } catch (const CLI::ParseError& error) {
    constexpr int code = static_cast<int>(Failure::usage);
    const std::string sentence = mistake(app, error);
    if (rank == 0 && failure_report::write({code, 0, sentence})) log::error(sentence);
    return code;
  }
}

}  // namespace lockstep
