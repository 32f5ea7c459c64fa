#include "train/resume_rules.hpp"

#include <array>

#include "base/error.hpp"
#include "base/text/json_text.hpp"
#include "runtime/versions.hpp"

namespace lockstep {

namespace {

using Json = nlohmann::json;

template <typename Value>
Json json_of(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

constexpr std::array<const char*, 4> schedule_names = {"constant", "step", "cosine", "one-cycle"};
constexpr std::array<const char*, 3> augmentation_names = {"none", "crop", "crop-flip"};

}  // namespace

Arithmetic arithmetic_of(const Device& device) {
  return {device.precision(), device.uses_tf32(), device.has_direct_convolutions()};
}

Json fixed_recipe(const Recipe& recipe, std::int64_t global_batch, const Manifest& data, const Arithmetic& arithmetic) {
  const LearningRate& rate = recipe.learning_rate;
  const Augmentation augmentation = recipe.augmentation.value_or(default_augmentation(data.kind));
  return {{"model", recipe.model},
          {"data (hash)", data.root_hash},
          {"global-batch", global_batch},
          {"batch-per-rank", json_of(recipe.batch.batch_per_rank)},
          {"accumulate", recipe.batch.accumulate},
          {"virtual-ranks", json_of(recipe.batch.virtual_ranks)},
          {"seed", recipe.seed},
          {"precision", precision_name(arithmetic.precision)},
          {"tf32", arithmetic.tf32},
          {"convolutions", arithmetic.direct_convolutions ? "direct" : "auto"},
          {"wire", precision_name(recipe.reduce.wire)},
          {"augment", augmentation_names.at(static_cast<std::size_t>(augmentation))},
          {"label-smoothing", recipe.label_smoothing},
          {"momentum", recipe.sgd.momentum},
          {"nesterov", recipe.sgd.kind == Momentum::nesterov},
          {"weight-decay", recipe.sgd.weight_decay},
          {"no-decay-norm", recipe.sgd.decay_scope == DecayScope::weights_only},
          {"lr", rate.rate},
          {"lr-batch", rate.base_batch},
          {"schedule", schedule_names.at(static_cast<std::size_t>(rate.schedule))},
          {"warmup", json_of(rate.warmup_epochs)},
          {"milestones", rate.milestones},
          {"lr-factor", rate.factor}};
}

void require_same_recipe(const Json& earlier, const Json& now) {
  for (const auto& [field, value] : now.items()) {
    const Json before = earlier.value(field, Json());
    require(before == value, Failure::usage,
            "the checkpoint was made with --{} {}, now it is {} (a training goes on as it began). Take the earlier "
            "value, another --checkpoints, or --resume never.",
            field, json_text(before), json_text(value));
  }
}

BatchPlan batch_of_resumed(const BatchPlan& plan, const Json& earlier) {
  const Json batch = earlier.value("global-batch", Json());
  const bool is_same = plan.batch_per_rank && earlier.value("batch-per-rank", Json()) == *plan.batch_per_rank &&
                       earlier.value("accumulate", Json()) == plan.accumulate;
  if (!is_same || !batch.is_number_integer()) return plan;
  BatchPlan kept = plan;
  kept.global_batch = batch.get<std::int64_t>();
  return kept;
}

Origin this_origin(const Session& session, const std::string& gradients) {
  Origin origin{session.world.size(), session.device->description(), gradients, session.device->plan_conditions(), {}};
  for (const LibraryVersion& library : library_versions()) origin.versions[library.name] = library.version;
  return origin;
}

std::string origin_difference(const Origin& earlier, const Origin& now, Sums sums) {
  std::string text;
  const auto add = [&text](const std::string& before, const std::string& after) {
    if (before != after) text += fmt::format("{}{} instead of {}", text.empty() ? "" : ", ", after, before);
  };
  const auto ranks = [](int count) { return fmt::format("{} rank{}", count, count == 1 ? "" : "s"); };
  if (sums == Sums::rounded) {
    add(ranks(earlier.ranks), ranks(now.ranks));
    if (earlier.ranks == now.ranks) add(earlier.gradients, now.gradients);
  }
  add(earlier.plan_conditions, now.plan_conditions);
  for (const auto& [library, version] : now.versions) {
    const auto before = earlier.versions.find(library);
    add(library + " " + (before == earlier.versions.end() ? "(none)" : before->second), library + " " + version);
  }
  return text;
}

}  // namespace lockstep
