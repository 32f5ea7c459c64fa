#include "search/space/space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text/counted.hpp"
#include "base/text/number.hpp"
#include "base/text/printable.hpp"
#include "run/metrics.hpp"
#include "search/space/space_reader.hpp"
#include "search/space/yaml_values.hpp"
#include "slurm/submit/shell_text.hpp"

namespace lockstep {
namespace {

constexpr double most_integer = 0x1p53;
constexpr double most_number = 1e300;

const std::array<Choice<SearchMetric>, 4> metrics{{{"test-accuracy", {Split::test, TestMetric::accuracy}},
                                                   {"test-loss", {Split::test, TestMetric::loss}},
                                                   {"validation-accuracy", {Split::validation, TestMetric::accuracy}},
                                                   {"validation-loss", {Split::validation, TestMetric::loss}}}};

// Options that a search sets, or that would end a trial before its rung.
constexpr std::array own_options =
    std::to_array<std::string_view>({"output", "checkpoints", "epochs", "max-steps", "resume", "early-stop",
                                     "time-limit", "gpus", "print-recipe", "tensorboard"});

std::string with_dashes(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

class SpaceFile {
 public:
  SpaceFile(const YamlValue& root, Space& space, SpaceReader& reader) : root_(root), space_(space), reader_(reader) {}

  void read() {
    reader_.check_fields(
        root_, "the file",
        {"name", "description", "program", "arguments", "searcher", "hyperparameters", "ranks_per_trial",
         "max_restarts", "seed", "save_experiment_best", "save_trial_best", "save_trial_latest"});
    const std::string_view file = "the file";
    read_field(root_, file, "program", [&](const YamlValue& program) { read_program(program); });
    if (const YamlValue* const arguments = find_value(root_, "arguments")) {
      reader_.attempt(arguments->line, [&] { read_arguments(*arguments); });
    }
    read_number(root_, "ranks_per_trial", {1, 65536}, space_.ranks_per_trial);
    if (const YamlValue* const ranks = find_value(root_, "ranks_per_trial")) space_.lines.ranks = ranks->line;
    read_number(root_, "max_restarts", {0, 1000}, space_.max_restarts);
    read_number(root_, "save_experiment_best", {0, most_trials}, space_.kept.search_best);
    read_number(root_, "save_trial_best", {0, most_trials}, space_.kept.trial_best);
    read_number(root_, "save_trial_latest", {0, most_trials}, space_.kept.trial_latest);
    std::int64_t seed = 0;
    read_number(root_, "seed", {0, (1LL << 31) - 1}, seed);
    space_.seed = static_cast<std::uint64_t>(seed);
    read_field(root_, file, "hyperparameters", [&](const YamlValue& map) { read_hyperparameters(map); });
    read_field(root_, file, "searcher", [&](const YamlValue& map) { read_searcher(map); });
    warn_of_scaled_rates();
    warn_of_unequal_samples();
  }

 private:
  // Calls `read` with the value of a field that must be there.
  template <typename Read>
  void read_field(const YamlValue& map, std::string_view owner, std::string_view field, Read read) {
    const YamlValue* const value = find_value(map, field);
    reader_.attempt(value == nullptr ? map.line : value->line, [&] { read(reader_.get(map, field, owner)); });
  }

  // Sets `number` if the field is there.
  template <typename Number>
  void read_number(const YamlValue& map, std::string_view field, const NumberRange<Number>& range, Number& number) {
    const YamlValue* const value = find_value(map, field);
    if (value != nullptr) reader_.attempt(value->line, [&] { number = reader_.number<Number>(*value, field, range); });
  }

  void refuse_own_option(int line, const std::string& option) const {
    if (std::ranges::find(own_options, option) == own_options.end()) return;
    reader_.refuse(line, fmt::format("--{} is set by the search. Leave it out", option));
  }

  template <typename Choices>
  auto chosen(const YamlValue& value, std::string_view field, const Choices& choices) const {
    const std::string& name = reader_.text(value, field);
    const auto* const choice = find_choice(choices, name);
    if (choice == nullptr) {
      reader_.refuse(value.line,
                     fmt::format("unknown {} '{}'. Known: {}", field, printable(name), choice_names(choices)));
    }
    return choice->value;
  }

  void read_program(const YamlValue& program) {
    space_.lines.program = program.line;
    space_.program = reader_.text(program, "program");
    if (space_.program.empty()) reader_.refuse(program.line, "'program' is empty");
    space_.lines.arguments = program.line;
  }

  void read_arguments(const YamlValue& arguments) {
    space_.lines.arguments = arguments.line;
    if (arguments.kind == YamlValue::Kind::list) {
      for (const YamlValue& word : arguments.items) space_.arguments.push_back(reader_.text(word, "arguments"));
    } else {
      space_.arguments = words_in(reader_.text(arguments, "arguments"));
    }
    for (const std::string& word : space_.arguments) refuse_own_option(arguments.line, option_of(word));
  }

  // Maps without a `type` group hyperparameters.
  void read_hyperparameters(const YamlValue& map) {
    if (map.kind != YamlValue::Kind::map) reader_.refuse(map.line, "'hyperparameters' is not a map");
    for (const YamlEntry& entry : map.entries) {
      const bool is_group = entry.value.kind == YamlValue::Kind::map && entry.value.find("type") == nullptr;
      reader_.attempt(entry.line, [&] { is_group ? read_hyperparameters(entry.value) : add_hyperparameter(entry); });
    }
  }

  void add_hyperparameter(const YamlEntry& entry) {
    Hyperparameter parameter{with_dashes(entry.key), entry.line};
    const std::string shown = printable(entry.key);
    if (!is_plain_word(parameter.option) || parameter.option.starts_with('-')) {
      reader_.refuse(entry.line, fmt::format("'{}' is not the name of an option", shown));
    }
    refuse_own_option(entry.line, parameter.option);
    if (std::ranges::find(space_.hyperparameters, parameter.option, &Hyperparameter::option) !=
        space_.hyperparameters.end()) {
      reader_.refuse(entry.line, fmt::format("the hyperparameter '{}' occurs twice. Keep one", shown));
    }
    if (std::ranges::find(space_.arguments, parameter.option, option_of) != space_.arguments.end()) {
      reader_.refuse(entry.line, fmt::format("--{} is in 'arguments', too. Remove it there", parameter.option));
    }
    if (entry.value.kind == YamlValue::Kind::list) {
      reader_.refuse(entry.line,
                     fmt::format("the value of '{0}' is a list. To try each of its values, write '{0}: "
                                 "{{type: categorical, vals: [...]}}'. To pass the list to the option, write "
                                 "its words, such as '30,60,80'",
                                 shown));
    }
    entry.value.kind == YamlValue::Kind::map ? read_range(entry.value, parameter)
                                             : parameter.words.push_back(word_of(parameter, entry.value));
    space_.hyperparameters.push_back(std::move(parameter));
  }

  OptionWord word_of(const Hyperparameter& parameter, const YamlValue& value) const {
    if (value.kind == YamlValue::Kind::nothing) return "";
    if (const std::optional<bool> truth = truth_of(value)) return *truth ? "--" + parameter.option : "";
    if (value.kind != YamlValue::Kind::text) {
      reader_.refuse(value.line, "a value is a list or a map. Write the words of the option, such as '30,60,80'");
    }
    return fmt::format("--{}={}", parameter.option, value.text);
  }

  void read_range(const YamlValue& map, Hyperparameter& parameter) {
    const std::string owner = fmt::format("hyperparameter '{}'", parameter.option);
    const YamlValue& type = reader_.get(map, "type", owner);
    const std::string& name = reader_.text(type, "type");
    if (name == "const") {
      reader_.check_fields(map, owner, {"type", "val"});
      const YamlEntry* const value = map.find("val");  // null leaves the option out
      if (value == nullptr) reader_.refuse(map.line, fmt::format("{} has no 'val'. Add it", owner));
      parameter.words.push_back(word_of(parameter, value->value));
    } else if (name == "categorical") {
      reader_.check_fields(map, owner, {"type", "vals"});
      const YamlValue& values = reader_.get(map, "vals", owner);
      if (values.kind != YamlValue::Kind::list || values.items.empty()) {
        reader_.refuse(values.line, "'vals' is not a list of one or more values");
      }
      for (const YamlValue& value : values.items) parameter.words.push_back(word_of(parameter, value));
    } else if (name == "int" || name == "double" || name == "log") {
      read_numbers(map, owner, name, parameter);
    } else {
      reader_.refuse(type.line, fmt::format("unknown type '{}' of {}. Known: const, categorical, int, double, log",
                                            printable(name), owner));
    }
  }

  void read_numbers(const YamlValue& map, const std::string& owner, const std::string& name,
                    Hyperparameter& parameter) const {
    using Kind = Hyperparameter::Kind;
    parameter.kind = name == "int" ? Kind::integer : name == "double" ? Kind::real : Kind::logarithmic;
    const bool is_log = parameter.kind == Kind::logarithmic;
    is_log ? reader_.check_fields(map, owner, {"type", "minval", "maxval", "base", "count"})
           : reader_.check_fields(map, owner, {"type", "minval", "maxval", "count"});
    const auto bound = [&](const char* field) {
      const YamlValue& value = reader_.get(map, field, owner);
      if (parameter.kind != Kind::integer) return reader_.number<double>(value, field, {-most_number, most_number});
      const auto most = static_cast<std::int64_t>(most_integer);
      return static_cast<double>(reader_.number<std::int64_t>(value, field, {-most, most}));
    };
    parameter.least = bound("minval");
    parameter.most = bound("maxval");
    if (!(parameter.least < parameter.most)) {
      reader_.refuse(reader_.get(map, "maxval", owner).line,
                     fmt::format("'maxval' of {} is not above 'minval'. Exchange them, or use const", owner));
    }
    if (is_log) {
      parameter.base = reader_.number_or<double>(map, "base", {0, 1e6, LeastIs::excluded}, 10);
      check_powers(map, owner, parameter);
    }
    parameter.count = reader_.number_or<std::int64_t>(map, "count", {1, most_trials}, 0);
  }

  void check_powers(const YamlValue& map, const std::string& owner, const Hyperparameter& parameter) const {
    if (parameter.base == 1) reader_.refuse(map.line, fmt::format("'base' of {} is 1. Choose another", owner));
    for (const double exponent : {parameter.least, parameter.most}) {
      const double power = std::pow(parameter.base, exponent);
      if (std::isfinite(power) && power > 0) continue;
      reader_.refuse(map.line,
                     fmt::format("{} is from base^minval to base^maxval, but {}^{} is too {} for a number", owner,
                                 number_text(parameter.base), number_text(exponent), power > 0 ? "large" : "small"));
    }
    refuse_values_as_exponents(map, owner, parameter);
  }

  // Both ends within the first power of the base: nobody needs a logarithm there.
  void refuse_values_as_exponents(const YamlValue& map, const std::string& owner,
                                  const Hyperparameter& parameter) const {
    constexpr double near_nothing = 0.1;
    if (parameter.least <= 0 || (parameter.most > 1 && parameter.least >= near_nothing)) return;
    const auto exponent = [&](double value) {
      return fmt::format("{:.6g}", std::log(value) / std::log(parameter.base));
    };
    const auto value = [&](double power) { return fmt::format("{:.4g}", std::pow(parameter.base, power)); };
    reader_.refuse(
        map.line, fmt::format("'minval' and 'maxval' of {} are exponents, so its values would be {} to {}. If you mean "
                              "values from {} to {}, write minval: {}, maxval: {}. If not, use the type double",
                              owner, value(parameter.least), value(parameter.most), number_text(parameter.least),
                              number_text(parameter.most), exponent(parameter.least), exponent(parameter.most)));
  }

  void read_searcher(const YamlValue& map) {
    if (map.kind != YamlValue::Kind::map) reader_.refuse(map.line, "'searcher' is not a map");
    const std::string_view owner = "the searcher";
    SearcherOptions& options = space_.searcher;
    bool is_known = false;
    read_field(map, owner, "name", [&](const YamlValue& name) {
      options.kind = chosen(name, "searcher", searcher_kinds);
      is_known = true;
    });
    read_field(map, owner, "max_length", [&](const YamlValue& length) { read_length(length); });
    read_field(map, owner, "metric", [&](const YamlValue& metric) { read_metric(metric, map); });
    if (!is_known) return;
    check_searcher_fields(map, options.kind, reader_.get(map, "name", owner).text);
    if (has_max_trials(options.kind)) {
      read_field(map, owner, "max_trials", [&](const YamlValue& trials) {
        options.max_trials = reader_.number<std::int64_t>(trials, "max_trials", {1, most_trials});
      });
    }
    if (options.kind == SearcherKind::grid) {
      reader_.attempt(map.line, [&] { options.max_trials = count_grid(map); });
    }
    if (options.kind == SearcherKind::custom) reader_.attempt(map.line, [&] { read_command(map); });
    read_number(map, "max_concurrent_trials", {1, most_trials}, options.max_concurrent_trials);
    read_number(map, "divisor", {1.5, 1e6}, options.divisor);
    read_number(map, "max_rungs", {1, 100}, options.max_rungs);
    reader_.attempt(map.line, [&] {
      if (const YamlValue* const mode = find_value(map, "mode")) options.mode = chosen(*mode, "mode", bracket_modes);
      if (reader_.truth(map, "stop_once").value_or(false)) options.promotion = Promotion::stop_once;
    });
    warn_of_single_rung(map.line);
  }

  bool varies(std::string_view option) const {
    return std::ranges::any_of(space_.hyperparameters,
                               [&](const Hyperparameter& one) { return one.option == option && !is_constant(one); });
  }

  void warn_of_unequal_samples() {
    if (space_.has_custom_loop() || space_.unit != LengthUnit::batches) return;
    for (const char* option : {"global-batch", "batch-per-rank", "accumulate", "local-steps"}) {
      if (!varies(option)) continue;
      space_.warnings.push_back(
          fmt::format("'max_length' counts batches, whose size varies with --{}. So trials of the same length see "
                      "different numbers "
                      "of samples. To compare them, state it in epochs or records.",
                      option));
      return;
    }
  }

  // The best rate of a trial is otherwise copied to a program that does not scale it.
  void warn_of_scaled_rates() {
    const auto is_lr_batch = [](std::string_view option) { return option == "lr-batch"; };
    const bool has_rate = varies("lr") || varies("learning-rate");
    const bool has_batch = varies("global-batch") || varies("batch-per-rank") || varies("accumulate");
    if (space_.has_custom_loop() || !has_rate || !has_batch ||
        std::ranges::any_of(space_.hyperparameters, is_lr_batch, &Hyperparameter::option) ||
        std::ranges::any_of(space_.arguments, is_lr_batch, option_of)) {
      return;
    }
    space_.warnings.emplace_back(
        "the learning rates of the trials are those of a batch of --lr-batch, and scale with the batch of each trial. "
        "With --lr-batch 0 in 'arguments' they do not scale.");
  }

  // That a search does not judge early is seen only at its end.
  void warn_of_single_rung(int line) {
    const SearcherOptions& options = space_.searcher;
    if (!has_rungs(options.kind) || brackets_of(options).front().lengths.size() > 1) return;
    space_.warnings.push_back(
        fmt::format("{}no trial ends early, because there is only one rung. More rungs need a 'max_length' and a "
                    "'max_trials' of at least 'divisor' ({}), and a 'max_rungs' of at least 2.",
                    yaml_place(space_.file, line), number_text(options.divisor)));
  }

  static bool has_max_trials(SearcherKind kind) {
    return kind == SearcherKind::random || kind == SearcherKind::custom || has_rungs(kind);
  }

  void read_command(const YamlValue& map) {
    const YamlValue& command = reader_.get(map, "command", "the searcher");
    if (command.kind != YamlValue::Kind::list || command.items.empty()) {
      reader_.refuse(command.line, "'command' is not a list of words. Write [python3, propose.py]");
    }
    for (const YamlValue& word : command.items) space_.command.push_back(reader_.text(word, "command"));
    space_.answer_seconds = reader_.number_or<double>(map, "answer_seconds", {0, 86400, LeastIs::excluded}, 600);
  }

  void check_searcher_fields(const YamlValue& map, SearcherKind kind, std::string_view name) {
    reader_.check_fields(map, "the searcher",
                         {"name", "metric", "smaller_is_better", "max_length", "max_trials", "max_concurrent_trials",
                          "divisor", "max_rungs", "mode", "stop_once", "command", "answer_seconds"});
    const auto refuse_unread = [&](std::string_view field, bool is_read) {
      const YamlEntry* const entry = map.find(field);
      if (entry == nullptr || is_read) return;
      reader_.add_refusal(entry->line, fmt::format("the searcher '{}' does not use '{}'. Leave it out", name, field));
    };
    const bool is_asynchronous = kind == SearcherKind::adaptive_asha || kind == SearcherKind::asha;
    refuse_unread("max_trials", has_max_trials(kind));
    refuse_unread("command", kind == SearcherKind::custom);
    refuse_unread("answer_seconds", kind == SearcherKind::custom);
    refuse_unread("divisor", has_rungs(kind));
    refuse_unread("max_rungs", has_rungs(kind));
    refuse_unread("mode", kind == SearcherKind::adaptive_asha);
    refuse_unread("stop_once", is_asynchronous);
  }

  void read_length(const YamlValue& map) {
    const bool has_one = map.kind == YamlValue::Kind::map && map.entries.size() == 1;
    const auto* const unit = has_one ? find_choice(length_units, map.entries.front().key) : nullptr;
    if (unit == nullptr) {
      reader_.refuse(map.line, "'max_length' is not a number with one unit. Write {epochs: 8}, batches or records");
    }
    space_.lines.length = map.line;
    space_.unit = unit->value;
    const std::int64_t most = unit->value == LengthUnit::epochs ? 1'000'000 : 1'000'000'000'000;
    space_.searcher.max_length = reader_.number<std::int64_t>(map.entries.front().value, unit->name, {1, most});
  }

  void read_metric(const YamlValue& value, const YamlValue& map) {
    space_.lines.metric = value.line;
    const std::string name = with_dashes(reader_.text(value, "metric"));
    const auto* const metric = find_choice(metrics, name);
    if (metric == nullptr) return read_custom_metric(map, value);
    space_.metric = metric->value;
    const bool is_loss = metric->value.value == TestMetric::loss;
    space_.smaller_is_better = reader_.truth(map, "smaller_is_better").value_or(is_loss);
    if (space_.smaller_is_better == is_loss) return;
    space_.warnings.push_back(fmt::format("{}the search looks for the {} {}, as 'smaller_is_better' says.",
                                          yaml_place(space_.file, map.find("smaller_is_better")->line),
                                          is_loss ? "largest" : "smallest", name));
  }

  void read_custom_metric(const YamlValue& map, const YamlValue& value) {
    const std::optional<bool> is_smaller_better = reader_.truth(map, "smaller_is_better");
    if (!is_metric_name(value.text)) {
      reader_.refuse(value.line, fmt::format("'{}' is not the name of a metric. Names have letters, digits, '_', '-' "
                                             "and '.'",
                                             printable(value.text)));
    }
    if (!is_smaller_better) {
      reader_.refuse(value.line, fmt::format("no training reports the metric '{}'. Known: {}. If a program of your own "
                                             "reports it, state smaller_is_better, true or false",
                                             printable(value.text), choice_names(metrics)));
    }
    space_.metric = {Split::validation, TestMetric::loss, value.text};
    space_.smaller_is_better = *is_smaller_better;
  }

  std::int64_t count_grid(const YamlValue& searcher) const {
    std::int64_t trials = 1;
    for (const Hyperparameter& parameter : space_.hyperparameters) {
      const std::int64_t points = grid_points(parameter);
      if (points == 0) {
        reader_.refuse(parameter.line, fmt::format("a grid needs 'count' of hyperparameter '{}', the number of its "
                                                   "values. Add it",
                                                   parameter.option));
      }
      if (points > most_trials / trials) {
        reader_.refuse(searcher.line,
                       fmt::format("the grid has more than {} trials. Lower 'count', or use the searcher "
                                   "'random'",
                                   most_trials));
      }
      trials *= points;
    }
    return trials;
  }

  const YamlValue& root_;
  Space& space_;
  SpaceReader& reader_;
};

}  // namespace

std::string length_text(std::int64_t length, LengthUnit unit) {
  constexpr std::array<std::string_view, 3> one{"epoch", "batch", "record"};
  return counted(length, one[static_cast<std::size_t>(unit)], choice_name(length_units, unit));
}

std::string metric_name(const SearchMetric& metric) {
  return metric.name.empty() ? choice_name(metrics, metric) : metric.name;
}

std::string training_metrics() { return choice_names(metrics); }

Space read_space(const YamlValue& root, SpaceReader& reader) {
  Space space;
  space.file = reader.file();
  SpaceFile(root, space, reader).read();
  space.content = json_of(root);
  return space;
}

Space space_of(const nlohmann::json& content, const std::string& file) {
  SpaceReader reader(file);
  Space space = read_space(yaml_of(content), reader);
  reader.throw_refusals();
  return space;
}

std::vector<const Hyperparameter*> varied_parameters(const Space& space) {
  std::vector<const Hyperparameter*> varied;
  for (const Hyperparameter& parameter : space.hyperparameters) {
    if (!is_constant(parameter)) varied.push_back(&parameter);
  }
  return varied;
}

std::vector<OptionWord> trial_settings(const Space& space, std::int64_t trial) {
  std::vector<OptionWord> words(space.hyperparameters.size());
  std::int64_t point = trial - 1;  // of the grid; the last hyperparameter varies fastest
  for (std::size_t index = words.size(); index-- > 0;) {
    const Hyperparameter& parameter = space.hyperparameters[index];
    if (space.searcher.kind == SearcherKind::grid) {
      words[index] = grid_word(parameter, point % grid_points(parameter));
      point /= grid_points(parameter);
    } else {
      words[index] = draw(parameter, static_cast<std::int64_t>(index), space.seed, trial);
    }
  }
  std::erase(words, "");
  return words;
}

}  // namespace lockstep
