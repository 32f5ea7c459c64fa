#include "launch/parse.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/versions.hpp"
#include "base/current_error.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text/nearest_name.hpp"
#include "launch/build_info.hpp"
#include "launch/help.hpp"
#include "launch/help_request.hpp"
#include "launch/path_options.hpp"
#include "launch/result_options.hpp"
#include "launch/stale_report.hpp"
#include "runtime/failure/failure_report.hpp"

namespace lockstep {
namespace {

// Maps options of other training programs, mainly PyTorch's, to Lockstep's.
struct ForeignName {
  std::string_view foreign;
  std::string_view own;
};
constexpr std::array<ForeignName, 34> foreign_names{{{"batch-size", "batch-per-rank"},
                                                     {"batch-size", "global-batch"},
                                                     {"workers", "loader-threads"},
                                                     {"num-workers", "loader-threads"},
                                                     {"amp", "precision"},
                                                     {"mixed-precision", "precision"},
                                                     {"fp16", "precision"},
                                                     {"bf16", "precision"},
                                                     {"dist-backend", "reduce"},
                                                     {"backend", "reduce"},
                                                     {"max-epochs", "epochs"},
                                                     {"num-epochs", "epochs"},
                                                     {"max-iters", "max-steps"},
                                                     {"num-steps", "max-steps"},
                                                     {"learning-rate", "lr"},
                                                     {"wd", "weight-decay"},
                                                     {"arch", "model"},
                                                     {"opt", "optimizer"},
                                                     {"lr-scheduler", "schedule"},
                                                     {"lr-warmup-epochs", "warmup"},
                                                     {"clip-grad-norm", "clip-norm"},
                                                     {"gradient-clip-val", "clip-norm"},
                                                     {"model-ema", "ema"},
                                                     {"model-ema-decay", "ema"},
                                                     {"sync-bn", "sync-batch-norm"},
                                                     {"accumulate-grad-batches", "accumulate"},
                                                     {"gradient-accumulation-steps", "accumulate"},
                                                     {"print-freq", "report-every"},
                                                     {"val-every", "test-every"},
                                                     {"eval-every", "test-every"},
                                                     {"data-path", "data"},
                                                     {"output-dir", "output"},
                                                     {"weights", "init-from"},
                                                     {"weights", "model-file"}}};

std::string versions_text() {
  std::vector<LibraryVersion> versions = library_versions();
  const std::string commit = build_info().commit;
  if (!commit.empty()) versions.insert(versions.begin() + 1, {"commit", commit});
  const auto mpi = std::ranges::find(versions, "MPI", &LibraryVersion::name);
  if (const std::string pmix = pmix_version(); !pmix.empty()) versions.insert(mpi + 1, {"PMIx", pmix});
  std::string text;
  for (const LibraryVersion& version : versions) {
    text += fmt::format("{}{:<14} {}", text.empty() ? "" : "\n", version.name, version.version);
  }
  return text;
}

// Otherwise CLI11 would accept any value of a flag: --tf32=0x1 as yes, --tf32=on-the-gpu without effect.
void refuse_values_of_flags(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) option->disable_flag_override();
  }
  for (CLI::App* command : app.get_subcommands({})) refuse_values_of_flags(*command);
}

// CLI11's message without its final period, or a clearer one.
std::string describe(const CLI::ParseError& error) {
  constexpr std::string_view flag_with_value = " was given a disallowed flag override";
  constexpr std::string_view without_value = ": 1 required ";
  constexpr std::string_view stated_often = ": At Most 1 required but received ";
  std::string_view words = error.what();
  words = words.substr(0, words.find_last_not_of(". \n") + 1);
  if (words.ends_with(flag_with_value)) {
    return fmt::format("--{} takes no value", words.substr(0, words.size() - flag_with_value.size()));
  }
  const std::size_t at = words.find(without_value);
  if (at != std::string_view::npos && words.ends_with(" missing")) {
    return fmt::format("{} requires a value", words.substr(0, at));
  }
  if (const std::size_t often = words.find(stated_often); often != std::string_view::npos) {
    return fmt::format("{} is given {} times. Give it once", words.substr(0, often),
                       words.substr(often + stated_often.size()));
  }
  return std::string(words);
}

// The option names of the program and its active commands, aliases included, without dashes.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  std::vector<const CLI::App*> apps = {&app};
  for (const CLI::App* command : app.get_subcommands()) apps.push_back(command);
  for (const CLI::App* one : apps) {
    for (const CLI::Option* option : one->get_options())
      std::ranges::copy(option->get_lnames(), std::back_inserter(names));
  }
  return names;
}

// The shortest name that starts with the word, which has three letters or more; empty if none does.
std::string name_with_start(std::string_view word, const std::vector<std::string>& names) {
  std::string shortest;
  for (const std::string& name : names) {
    const bool is_shorter = shortest.empty() || name.size() < shortest.size();
    if (word.size() >= 3 && name.starts_with(word) && is_shorter) shortest = name;
  }
  return shortest;
}

// "--batch-per-rank or --global-batch" for "--batch_size"; empty if no name is close.
std::string meant_options(const std::vector<std::string>& names, std::string word) {
  word.erase(0, word.find_first_not_of('-'));
  std::ranges::replace(word, '_', '-');
  std::vector<std::string> meant;
  for (const ForeignName& name : foreign_names) {
    const bool is_here = std::ranges::find(names, name.own) != names.end();
    if (name.foreign == word && is_here) meant.push_back(fmt::format("--{}", name.own));
  }
  if (meant.empty()) {
    std::string nearest = nearest_name(word, names);
    if (nearest.empty()) nearest = name_with_start(word, names);
    if (!nearest.empty()) meant.push_back("--" + nearest);
  }
  return fmt::format("{}", fmt::join(meant, " or "));
}

std::string unknown_option_message(const CLI::App& app, const std::string& word) {
  const std::string meant = meant_options(option_names(app), word);
  if (meant == word && !app.get_subcommands().empty()) {
    return fmt::format("{} belongs to the command '{}'. Put it after the command. See --help.", word,
                       app.get_subcommands().front()->get_name());
  }
  return fmt::format("unknown option '{}'. {}See --help.", word,
                     meant.empty() ? "" : fmt::format("Did you mean {}? ", meant));
}

// The message for a program that requires a command and got none. `words`: those that are no option of the program.
std::string missing_command_message(const CLI::App& app, const std::vector<std::string>& words) {
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({})) commands.push_back(command->get_name());
  std::string fault = "no command is given. ";
  if (!words.empty() && words.front().starts_with('-')) {
    const std::string option = words.front().substr(0, words.front().find('='));
    const bool is_misspelt = !meant_options(option_names(app), option).empty();  // and not one of a command
    if (is_misspelt) return unknown_option_message(app, option);
    fault += fmt::format("Put one before {}. ", option);  // the next word may be the option's value
  } else if (!words.empty()) {
    fault = fmt::format("unknown command '{}'. {}", words.front(), did_you_mean(words.front(), commands));
  }
  return fmt::format("{}Known: {}. See --help.", fault, fmt::join(commands, ", "));
}

// "Did you mean --data cifar10? " for a word without an option, if all values have options, and if the first of those
// that name a file or folder is not given. Otherwise empty.
std::string did_you_mean_option(const CLI::App& app, const std::string& word) {
  const CLI::App& command = app.get_subcommands().empty() ? app : *app.get_subcommands().front();
  const std::vector<const CLI::Option*> options = command.get_options();
  const auto first = std::ranges::find_if(options, [](const CLI::Option* one) { return names_path(*one); });
  const bool has_arguments = std::ranges::any_of(options, &CLI::Option::get_positional);
  if (has_arguments || first == options.end() || (*first)->count() > 0) return "";
  return fmt::format("Did you mean {} {}? ", (*first)->get_name(), word);
}

constexpr std::array<std::string_view, 5> options_of_nodes = {"--data", "--stage", "--output", "--threads",
                                                              "--loader-threads"};

// The values given on a command line, including those of its commands.
std::vector<RankValue> stated_values(const CLI::App& app) {
  std::vector<RankValue> values;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    const bool may_differ = std::ranges::find(options_of_nodes, name) != options_of_nodes.end();
    if (option->count() > 0 && !may_differ) {
      values.push_back({name, fmt::format("{}", fmt::join(option->results(), " "))});
    }
  }
  for (const CLI::App* command : app.get_subcommands()) {
    values.push_back({"command", command->get_name()});
    std::ranges::move(stated_values(*command), std::back_inserter(values));
  }
  return values;
}

RankValue command_line(std::string_view outcome) { return {"command line", std::string(outcome)}; }

std::vector<RankValue> valid_command_line(const CLI::App& app) {
  std::vector<RankValue> values{command_line("a valid one")};
  std::ranges::move(stated_values(app), std::back_inserter(values));
  return values;
}

bool takes_value(const CLI::App& app, const std::string& name) {
  const CLI::Option* const option = app.get_option_no_throw(name);
  if (option != nullptr && option->get_items_expected_max() > 0) return true;
  return std::ranges::any_of(app.get_subcommands({}),
                             [&](const CLI::App* command) { return takes_value(*command, name); });
}

// CLI11 takes the next word as the value of `--output=`, which usually comes from an unset shell variable.
std::vector<std::string> with_empty_values(const CLI::App& app, const std::vector<std::string>& words) {
  std::vector<std::string> result;
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (*word == "--") {
      result.insert(result.end(), word, words.end());
      break;
    }
    const bool is_empty = word->starts_with("--") && word->find('=') + 1 == word->size();
    const std::string name = word->substr(0, word->find('='));
    if (is_empty && takes_value(app, name)) {
      result.insert(result.end(), {name, ""});
    } else {
      result.push_back(*word);
    }
  }
  return result;
}

std::string answer_to(const HelpRequest& request, const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App& command = command_in(app, words);
  if (request.kind == HelpRequest::Kind::version) return versions_text();
  if (request.kind == HelpRequest::Kind::help_all) return full_help_text(command, help_columns());
  std::vector<std::string> groups = request.groups;
  std::erase(groups, command.get_name());
  return help_text(command, groups, help_columns());
}

}  // namespace

std::string usage_error_message(const CLI::App& app, const CLI::ParseError& error) {
  const bool is_extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  const bool is_missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  const std::vector<std::string> words = app.remaining(true);
  const bool has_commands = !app.get_subcommands({}).empty();
  if (is_missing && has_commands && app.get_subcommands().empty()) return missing_command_message(app, words);
  // A missing option is often present under a wrong name.
  const bool is_unknown = is_extra || (is_missing && !words.empty());
  if (!is_unknown || words.empty()) return fmt::format("{}. See --help.", describe(error));
  const std::string word = words.front().substr(0, words.front().find('='));
  return word.starts_with('-')
             ? unknown_option_message(app, word)
             : fmt::format("unknown argument '{}'. {}See --help.", word, did_you_mean_option(app, word));
}

void declare_program(CLI::App& app, const std::function<void(CLI::App&)>& declare) {
  app.option_defaults()->always_capture_default();
  app.set_help_flag("-h,--help", "Print help; --help GROUP prints one group of options");
  app.set_help_all_flag("--help-all", "Print all options");
  app.set_version_flag("--version", versions_text, "Print the versions of the program and its libraries");
  declare(app);
  refuse_values_of_flags(app);
  refuse_empty_paths(app);
}

// Ranks compare each outcome before one acts on it: after that, the other ranks wait for it.
std::optional<int> parse_options(int argc, char** argv, const std::function<void(CLI::App&)>& declare,
                                 const ParsingRanks& ranks) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  CLI::App app;
  app.name(argv[0]);
  declare_program(app, declare);
  if (const std::optional<HelpRequest> request = help_request(words)) {
    ranks.compare({command_line(request_text(*request))});
    log::plain(answer_to(*request, app, words));
    return 0;
  }
  try {
    std::vector<std::string> reversed = with_empty_values(app, words);
    std::ranges::reverse(reversed);
    app.parse(std::move(reversed));
    set_stated_paths(stated_paths(app));
    ranks.compare(valid_command_line(app));
    ranks.on_writer([&app] { require_places_for_results(app); });
    return std::nullopt;
  } catch (const CLI::Success& asked) {
    ranks.compare({command_line("--print-recipe")});
    log::plain(asked.what());
    return 0;
  } catch (const CLI::ParseError& error) {
    constexpr int code = static_cast<int>(Failure::usage);
    const std::string sentence = usage_error_message(app, error);
    ranks.compare({command_line(std::string_view(sentence).substr(0, sentence.find(". ")))});
    if (ranks.rank == 0) {
      take_stale_report(app);
      if (failure_report::write({code, 0, sentence})) log::error(sentence);
      failure_report::set_folder({});
    }
    return code;
  }
}

}  // namespace lockstep
