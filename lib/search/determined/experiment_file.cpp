#include "search/determined/experiment_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text/nearest_name.hpp"
#include "base/text/printable.hpp"
#include "search/determined/experiment_draft.hpp"
#include "search/determined/experiment_fields.hpp"
#include "search/determined/experiment_hyperparameters.hpp"
#include "search/search_text.hpp"
#include "search/space/space.hpp"

namespace lockstep {
namespace {

constexpr std::array own_fields =
    std::to_array<std::string_view>({"name", "description", "max_restarts", "searcher", "hyperparameters"});

// Null, an empty list or an empty map: the default of each field. Complete files that Determined prints have them.
bool is_unset(const YamlValue& value) {
  return value.kind == YamlValue::Kind::nothing || (value.kind == YamlValue::Kind::list && value.items.empty()) ||
         (value.kind == YamlValue::Kind::map && value.entries.empty());
}

// A period that changes nothing: {batches: 0} is the default, and trainings are tested after each epoch.
bool is_usual_period(const YamlValue& value) {
  if (value.kind != YamlValue::Kind::map || value.entries.size() != 1) return false;
  const YamlEntry& entry = value.entries.front();
  return entry.value.text == (entry.key == "epochs" ? "1" : "0");
}

class ExperimentTranslator {
 public:
  ExperimentTranslator(const YamlValue& root, const StatedCommand& stated, SpaceReader& reader)
      : root_(root), program_(stated.program), reader_(reader), draft_(root, stated, reader) {}

  Translation translate() {
    read_section(root_, "");
    read_program();
    read_metric();
    attempt("optimizations.mixed_precision", [&](const YamlValue& level) { read_precision(level); });
    attempt("optimizations.aggregation_frequency", [&](const YamlValue& frequency) { read_aggregation(frequency); });
    read_length();
    attempt("searcher.max_concurrent_trials", [&](const YamlValue& trials) { read_concurrency(trials); });
    attempt("resources.slots_per_trial", [&](const YamlValue& slots) { read_slots(slots); });
    attempt("min_checkpoint_period", [&](const YamlValue& period) { read_checkpoint_period(period); });
    if (has_custom_loop_) {
      if (const YamlValue* const map = draft_.find("hyperparameters")) draft_.set("hyperparameters", *map);
    } else {
      translate_hyperparameters(draft_, batches_per_step_);
    }
    add_warnings();
    return draft_.finish();
  }

 private:
  struct Ignored {
    std::string_view reason;
    int line = 0;
    std::vector<std::string> names;
  };

  void read_section(const YamlValue& map, const std::string& section) {
    for (const YamlEntry& entry : map.entries) {
      const std::string there = section.empty() ? entry.key : section + "." + entry.key;
      const ExperimentField* const field = find_experiment_field(there);
      const bool has_point = entry.key.find('.') != std::string::npos;  // it would look like a path
      if (has_point || (field == nullptr && !is_experiment_section(there))) {
        refuse_unknown(entry, section);
      } else if (is_unset(entry.value)) {
        continue;
      } else if (field != nullptr) {
        take(*field, entry);
      } else if (entry.value.kind == YamlValue::Kind::map) {
        read_section(entry.value, there);
      } else if (there == "searcher") {
        draft_.set(there, entry.value);  // read_space() refuses it
      } else {
        reader_.add_refusal(entry.line, fmt::format("'{}' is not a map", there));
      }
    }
  }

  void refuse_unknown(const YamlEntry& entry, const std::string& section) {
    const std::string prefix = section.empty() ? "" : section + ".";
    std::vector<std::string> known;
    for (const ExperimentField& field : experiment_fields()) {
      if (!field.there.starts_with(prefix)) continue;
      const std::string_view rest = field.there.substr(prefix.size());
      known.emplace_back(rest.substr(0, rest.find('.')));
    }
    reader_.add_refusal(entry.line,
                        fmt::format("Determined has no field '{}' in {}. {}Correct or remove it", printable(entry.key),
                                    section.empty() ? "experiment files" : section, did_you_mean(entry.key, known)));
  }

  void take(const ExperimentField& field, const YamlEntry& entry) {
    switch (field.treatment) {
      case ExperimentTreatment::moved:
        draft_.set(field.here, entry.value);
        if (field.there != field.here) draft_.add_name(entry.line, field.there, field.here);
        break;
      case ExperimentTreatment::ignored:
        ignore(field, entry);
        break;
      case ExperimentTreatment::refused:
        reader_.add_refusal(entry.line, fmt::format("'{}' is not supported. {}", field.there, field.here));
        break;
      default:  // translate() reads the others
        break;
    }
  }

  void ignore(const ExperimentField& field, const YamlEntry& entry) {
    const bool is_off = truth_of(entry.value) == false;
    if (is_off || (field.there == "min_validation_period" && is_usual_period(entry.value))) return;
    auto same = std::ranges::find(ignored_, field.here, &Ignored::reason);
    if (same == ignored_.end()) same = ignored_.insert(same, {field.here, entry.line, {}});
    same->names.push_back(fmt::format("'{}'", field.there));
  }

  void add_warnings() {
    for (const Ignored& one : ignored_) {
      draft_.add_warning(one.line, fmt::format("{} {} no effect. {}", fmt::join(one.names, ", "),
                                               one.names.size() == 1 ? "has" : "have", one.reason));
    }
  }

  // Calls `read` with the value of a field if there is one.
  template <typename Read>
  void attempt(std::string_view path, Read read) {
    const YamlValue* const value = draft_.find(path);
    if (value != nullptr) reader_.attempt(value->line, [&] { read(*value); });
  }

  void read_program() {
    const int line = draft_.line_of("entrypoint");
    if (!program_) {
      reader_.add_refusal(line,
                          "'entrypoint' names a program for Determined, which search cannot run. Name one of Lockstep, "
                          "such as --program train_cifar --arguments \"--data data/cifar10\"");
    } else if (draft_.find("entrypoint") != nullptr) {
      draft_.add_name(line, "entrypoint", fmt::format("--program {}", *program_));
      draft_.add_note(line, fmt::format("'entrypoint' is not used. Trials run {}, as --program says.", *program_));
    }
    draft_.set("program", stated_text(program_.value_or("train_cifar")));  // so that a missing one is refused once
  }

  void read_metric() {
    const YamlValue* const metric = draft_.find("searcher.metric");
    const YamlValue* const smaller = draft_.find("searcher.smaller_is_better");
    if (metric == nullptr) return;
    std::string name = metric->text;
    std::ranges::replace(name, '-', '_');
    const auto* const known = find_choice(experiment_metrics, name);
    if (known == nullptr) return read_custom_metric(*metric, smaller);
    const ExperimentMetric& here = known->value;
    draft_.set("searcher.metric", yaml_text(std::string(here.here), metric->line));
    const bool is_accuracy = !here.is_loss && !here.is_error;
    if (smaller == nullptr && is_accuracy) {
      return reader_.add_refusal(
          metric->line, fmt::format("'smaller_is_better' is missing, and is then true in Determined: the search would "
                                    "look for the smallest {}. Add smaller_is_better: false, or true if you mean it",
                                    name));
    }
    if (smaller != nullptr && !truth_of(*smaller)) {
      return draft_.set("searcher.smaller_is_better", *smaller);  // read_space() refuses it
    }
    const bool is_smaller = smaller == nullptr || *truth_of(*smaller);
    const bool is_smaller_here = here.is_error ? !is_smaller : is_smaller;
    const int line = smaller == nullptr ? metric->line : smaller->line;
    draft_.set("searcher.smaller_is_better", yaml_text(is_smaller_here ? "true" : "false", line));
    draft_.add_name(metric->line, fmt::format("searcher.metric: {}", metric->text),
                    fmt::format("{}, {} is better", here.here, is_smaller_here ? "smaller" : "larger"));
  }

  // Of a program with a training loop of its own, which checks its hyperparameters itself.
  void read_custom_metric(const YamlValue& metric, const YamlValue* smaller) {
    has_custom_loop_ = true;
    draft_.set("searcher.metric", metric);
    draft_.set("searcher.smaller_is_better", smaller == nullptr ? yaml_text("true", metric.line) : *smaller);
    if (smaller == nullptr) {
      draft_.add_name(metric.line, fmt::format("searcher.metric: {}", printable(metric.text)),
                      "the same, smaller is better");
    }
  }

  void read_precision(const YamlValue& level) {
    const auto* const precision = find_choice(experiment_precisions, level.text);
    if (precision == nullptr) {
      reader_.refuse(level.line, fmt::format("unknown mixed_precision '{}'. Known: {}", printable(level.text),
                                             choice_names(experiment_precisions)));
    }
    draft_.add_argument(level.line, fmt::format("optimizations.mixed_precision: {}", precision->name), "--precision",
                        precision->value);
  }

  void read_aggregation(const YamlValue& frequency) {
    batches_per_step_ = reader_.number<std::int64_t>(frequency, "aggregation_frequency", {1, 65536});
    if (batches_per_step_ == 1) return;
    const bool states_batch = draft_.find("hyperparameters.global_batch_size") != nullptr ||
                              draft_.has_argument("global-batch") || draft_.has_argument("batch-per-rank");
    if (!states_batch) {
      draft_.add_warning(frequency.line,
                         "'global_batch_size' is missing, so the default of --global-batch counts all samples of a "
                         "step, which has several batches ('aggregation_frequency').");
    }
    draft_.add_argument(frequency.line, "optimizations.aggregation_frequency", "--accumulate",
                        std::to_string(batches_per_step_));
    if (reader_.truth(*draft_.find("optimizations"), "average_aggregated_gradients").value_or(true)) return;
    reader_.refuse(draft_.line_of("optimizations.average_aggregated_gradients"),
                   "'average_aggregated_gradients' is false, but a step always has the mean of its gradients. Multiply "
                   "the learning rate by 'aggregation_frequency', and set it to true");
  }

  void read_length() {
    const YamlValue* const length = draft_.find("searcher.max_length");
    const YamlValue* const time = draft_.find("searcher.max_time");
    const YamlValue* const unit = draft_.find("searcher.time_metric");
    if (time == nullptr && unit == nullptr) {
      if (length == nullptr) return;
      const bool has_no_unit = length->kind == YamlValue::Kind::text && has_custom_loop_;  // It counts steps.
      set_length(has_no_unit ? yaml_map("batches", *length) : *length);
      return;
    }
    // A field that is refused here must not be refused as missing, too.
    const auto refuse = [&](std::string_view message) {
      reader_.add_refusal((time != nullptr ? time : unit)->line, message);
      draft_.set("searcher.max_length", yaml_map("epochs", yaml_text("1", 0)));
    };
    if (length != nullptr) {
      return refuse("'max_time' and 'time_metric' are another form of 'max_length'. Keep one form");
    }
    if (time == nullptr || unit == nullptr) {
      return refuse("'max_time' and 'time_metric' need each other. Add the other");
    }
    if (find_choice(length_units, unit->text) == nullptr) {
      return refuse(
          fmt::format("unknown time_metric '{}'. Known: {}", printable(unit->text), choice_names(length_units)));
    }
    set_length(yaml_map(unit->text, *time));
    draft_.add_name(time->line, "searcher.max_time, time_metric",
                    fmt::format("max_length: {{{}: {}}}", unit->text, time->text));
  }

  void set_length(YamlValue length) {
    const bool is_in_batches =
        length.kind == YamlValue::Kind::map && length.entries.size() == 1 && length.entries.front().key == "batches";
    if (batches_per_step_ > 1 && is_in_batches) {
      YamlValue& batches = length.entries.front().value;
      reader_.attempt(batches.line, [&] { batches.text = std::to_string(steps_of(batches)); });
    }
    draft_.set("searcher.max_length", std::move(length));
  }

  std::int64_t steps_of(const YamlValue& batches) {
    const auto count = reader_.number<std::int64_t>(batches, "batches", {1, 1'000'000'000'000});
    const std::int64_t steps = count / batches_per_step_;
    if (count % batches_per_step_ != 0) {
      reader_.refuse(batches.line, fmt::format("a step has {} batches ('aggregation_frequency'), which {} batches are "
                                               "not a multiple of. Choose a multiple, or a length in epochs",
                                               batches_per_step_, count));
    }
    draft_.add_name(batches.line, fmt::format("batches: {}", count), fmt::format("batches: {}", steps));
    return steps;
  }

  void read_concurrency(const YamlValue& trials) {
    const bool is_any = trials.text == "0";
    draft_.set("searcher.max_concurrent_trials", is_any ? yaml_text(std::to_string(most_trials), trials.line) : trials);
    if (is_any) draft_.add_name(trials.line, "searcher.max_concurrent_trials: 0", "as many as cores and GPUs allow");
  }

  void read_slots(const YamlValue& slots) {
    const auto count = reader_.number<std::int64_t>(slots, "slots_per_trial", {0, 65536});
    draft_.set("ranks_per_trial", yaml_text(std::to_string(std::max<std::int64_t>(count, 1)), slots.line));
    draft_.add_name(slots.line, "resources.slots_per_trial", "ranks_per_trial");
    if (count == 0) draft_.add_argument(slots.line, "resources.slots_per_trial: 0", "--device", "cpu");
  }

  void read_checkpoint_period(const YamlValue& period) {
    if (is_unset(period)) return;
    const bool has_one = period.kind == YamlValue::Kind::map && period.entries.size() == 1;
    const auto* const unit = has_one ? find_choice(length_units, period.entries.front().key) : nullptr;
    if (unit == nullptr || unit->value == LengthUnit::records) {
      reader_.refuse(period.line, "'min_checkpoint_period' is not a number of batches or epochs. Write {epochs: 1}");
    }
    const auto count =
        reader_.number<std::int64_t>(period.entries.front().value, "min_checkpoint_period", {0, 1'000'000'000});
    if (count == 0) return;
    const std::int64_t steps = (count + batches_per_step_ - 1) / batches_per_step_;
    draft_.add_argument(period.line, "min_checkpoint_period", "--checkpoint-every",
                        unit->value == LengthUnit::epochs ? fmt::format("{}epochs", count) : std::to_string(steps));
  }

  const YamlValue& root_;
  const std::optional<std::string>& program_;
  SpaceReader& reader_;
  ExperimentDraft draft_;
  std::vector<Ignored> ignored_;
  std::int64_t batches_per_step_ = 1;  // aggregation_frequency: a step here has several batches of Determined
  bool has_custom_loop_ = false;
};

}  // namespace

bool is_experiment_file(const YamlValue& root) {
  return root.find("program") == nullptr && std::ranges::any_of(root.entries, [](const YamlEntry& entry) {
           const bool is_known = find_experiment_field(entry.key) != nullptr || is_experiment_section(entry.key);
           return is_known && std::ranges::find(own_fields, entry.key) == own_fields.end();
         });
}

Translation translate_experiment(const YamlValue& root, const StatedCommand& stated, SpaceReader& reader) {
  return ExperimentTranslator(root, stated, reader).translate();
}

std::string translation_text(const Translation& translation) {
  if (translation.names.empty()) return "";
  std::size_t width = 0;
  for (const TranslatedName& name : translation.names) width = std::max(width, name.there.size());
  std::string text = fmt::format("{:<{}}  here", "in Determined", width);
  for (const TranslatedName& name : translation.names) {
    text += "\n" + cut_line(fmt::format("{:<{}}  {}", printable(name.there), width, printable(name.here)));
  }
  return text;
}

}  // namespace lockstep
