#include "search/determined/experiment_hyperparameters.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/nearest_name.hpp"
#include "base/text/printable.hpp"
#include "recipe/fields.hpp"
#include "search/determined/experiment_fields.hpp"

namespace lockstep {
namespace {

class HyperparameterTranslator {
 public:
  HyperparameterTranslator(ExperimentDraft& draft, std::int64_t batches_per_step)
      : draft_(draft), batches_per_step_(batches_per_step) {}

  void translate() {
    const YamlValue* const map = draft_.find("hyperparameters");
    draft_.set("hyperparameters", map == nullptr ? yaml_map(draft_.line_of("hyperparameters")) : translated(*map));
    if (rate_ == nullptr || has_rate_batch_ || draft_.has_argument("lr-batch")) return;
    draft_.add_argument(rate_->line, "hyperparameters." + rate_->key, "--lr-batch", "0");
    draft_.add_note(rate_->line, fmt::format("'{}' does not scale with the batch, as in Determined: --lr-batch 0 is "
                                             "added. To scale it, add --lr-batch to --arguments.",
                                             rate_->key));
  }

 private:
  // Maps without a `type` group hyperparameters.
  YamlValue translated(const YamlValue& map) {
    if (map.kind != YamlValue::Kind::map) return map;  // read_space() refuses it
    YamlValue here = yaml_map(map.line);
    for (const YamlEntry& entry : map.entries) {
      const bool is_group = entry.value.kind == YamlValue::Kind::map && entry.value.find("type") == nullptr;
      if (is_group) {
        here.entries.push_back({entry.key, entry.line, translated(entry.value)});
      } else {
        add_to(here, entry);
      }
    }
    return here;
  }

  void add_to(YamlValue& map, const YamlEntry& entry) {
    const ExperimentField* const known = find_experiment_field("hyperparameters." + entry.key);
    std::string option = known == nullptr ? entry.key : std::string(known->here.substr(2));
    std::ranges::replace(option, '_', '-');
    const auto field = std::ranges::find_if(training_fields(), [&](const Field& one) {
      return one.name == option || (!one.also.empty() && one.also == option);
    });
    if (field == training_fields().end()) return refuse(entry, option);
    map.entries.push_back({field->name, entry.line, entry.value});
    if (known != nullptr) draft_.add_name(entry.line, known->there, known->here);
    if (field->name == "lr") rate_ = &entry;
    if (field->name == "lr-batch") has_rate_batch_ = true;
    if (field->name == "global-batch" && batches_per_step_ > 1) multiply_batch(map.entries.back());
  }

  void refuse(const YamlEntry& entry, const std::string& option) {
    std::vector<std::string> options;
    for (const Field& field : training_fields()) options.insert(options.end(), {field.name, field.also});
    draft_.reader().add_refusal(
        entry.line, fmt::format("no training has an option --{}, so '{}' would have no effect. {}Remove or rename it",
                                printable(option), printable(entry.key), did_you_mean(option, options)));
  }

  // Determined aggregates several batches of this size in a step. Here the size is that of the step.
  void multiply_batch(YamlEntry& entry) {
    const YamlValue* const type = find_value(entry.value, "type");
    const YamlValue* const value = find_value(entry.value, "val");
    const YamlValue& size = type != nullptr && type->text == "const" && value != nullptr ? *value : entry.value;
    if (size.kind != YamlValue::Kind::text) {
      return draft_.reader().add_refusal(
          entry.line,
          "with 'aggregation_frequency', 'global_batch_size' must be a constant, because a step has several batches. "
          "State one number");
    }
    draft_.reader().attempt(entry.line, [&] {
      const std::int64_t samples =
          batches_per_step_ * draft_.reader().number<std::int64_t>(size, "global_batch_size", {1, 1'000'000'000});
      draft_.add_name(entry.line, fmt::format("hyperparameters.global_batch_size: {}", size.text),
                      fmt::format("--global-batch {}", samples));
      entry.value = yaml_text(std::to_string(samples), entry.value.line);
    });
  }

  ExperimentDraft& draft_;
  std::int64_t batches_per_step_;
  const YamlEntry* rate_ = nullptr;  // the learning rate
  bool has_rate_batch_ = false;
};

}  // namespace

void translate_hyperparameters(ExperimentDraft& draft, std::int64_t batches_per_step) {
  HyperparameterTranslator(draft, batches_per_step).translate();
}

}  // namespace lockstep
