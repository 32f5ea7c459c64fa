#include "train/opening/resume_rules.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "backend/versions.hpp"
#include "base/error.hpp"
#include "base/text/counted.hpp"
#include "base/text/json_text.hpp"
#include "device/cpu/instruction_sets/instruction_set.hpp"
#include "network/onnx/onnx_network.hpp"
#include "recipe/fields.hpp"
#include "recipe/run_options.hpp"
#include "train/rank_places.hpp"

namespace lockstep {

namespace {

using Json = nlohmann::json;

constexpr const char* data_field = "data (hash)";

// Different digits can denote the same number: earlier versions wrote 0.9 as 0.8999999761581421.
Json as_written_now(const std::string& name, const Json& value) {
  const auto field = std::ranges::find(training_fields(), name, &Field::name);
  Settings settings;
  if (field == training_fields().end() || !set_from_json(*field, settings, value).empty()) return value;
  return json_of(*field, settings);
}

std::string describe_value(const Json& value) { return value.is_null() ? "unset" : json_text(value); }

// Empty if there is no difference.
std::string difference(const std::string& name, const Json& before, const Json& now) {
  if (as_written_now(name, before) == now) return "";
  return fmt::format("--{} {}, but now it is {}", name, describe_value(before), describe_value(now));
}

// In the fields of `now`. Data come first: other data imply other defaults, which the user did not choose, so they are
// the only difference named.
std::vector<std::string> differences(const Json& earlier, const Json& now) {
  const Json defaults = json_of(Settings(), Field::Part::recipe);
  std::vector<std::string> found;
  const auto is_file = [](const Json& model) { return model.is_string() && is_onnx_path(model.get<std::string>()); };
  const auto has_common_weights = [](const Json& sync) { return sync != "local" && sync != "ps-async"; };
  const auto compare = [&](const std::string& name, const Json& before, const Json& value) {
    if (name == "sync" && has_common_weights(before) && has_common_weights(value)) return;  // the same weights
    if (name == "model" && is_file(before) && is_file(value)) return;  // given_network() compares the networks
    const std::string message = difference(name, before, value);
    if (!message.empty()) found.push_back(message);
  };
  compare(data_field, earlier.value(data_field, Json()), now.value(data_field, Json()));
  if (!found.empty()) return found;
  Json whole = now;
  for (const Field& field : training_fields()) {
    if (!field.is_recorded_unset) whole.emplace(field.name, nullptr);
  }
  for (const auto& [name, value] : whole.items()) {
    compare(name, earlier.value(name, defaults.value(name, Json())), value);
  }
  return found;
}

}  // namespace

Recipe completed(Recipe recipe, std::int64_t global_batch, const Manifest& data, const Device& device) {
  recipe.batch.global_batch = ChosenNumber{global_batch};
  recipe.arithmetic = arithmetic_of(device);
  recipe.images.augmentation = training_rules(recipe.images, data, 0).augmentation;
  return recipe;
}

Json fixed_recipe(const Recipe& recipe, const Manifest& data) {
  const Settings settings{recipe, {}};
  Json fixed = {{data_field, data.root_hash}};
  for (const Field& field : training_fields()) {
    if (field.on_resume != Field::OnResume::fixed) continue;
    Json value = json_of(field, settings);
    if (field.is_recorded_unset || !value.is_null()) fixed[field.name] = std::move(value);
  }
  return fixed;
}

bool may_describe(const Json& summary, const Json& now) {
  Json stated = summary.value("recipe", Json());
  if (!stated.is_object()) return true;
  stated[data_field] = summary.value("data_hash", Json());
  Json compared = now;
  for (const char* name : {"global-batch", "augment"}) compared.erase(name);
  return differences(stated, compared).empty();
}

void require_same_recipe(const Json& earlier, const Json& now, const std::filesystem::path& origin) {
  const std::vector<std::string> found = differences(earlier, now);
  require(found.empty(), Failure::usage,
          "the checkpoint was made with {}. A resumed training keeps its options. Use the earlier value{}, or start a "
          "new training. To start with its weights, use --init-from '{}' and another --output. To start from scratch, "
          "use --resume never.",
          fmt::join(found, "; with "), found.size() == 1 ? "" : "s", origin.string());
}

BatchOptions batch_of_resumed(const BatchOptions& options, const Json& earlier, int ranks, const char* name) {
  const Json batch = earlier.value("global-batch", Json());
  const bool is_same = options.batch_per_rank && earlier.value("batch-per-rank", Json()) == *options.batch_per_rank &&
                       earlier.value("accumulate", Json()) == options.accumulate;
  const bool is_open = options.global_batch && options.global_batch->by == ChosenBy::program;
  const bool is_repeated = options.global_batch && batch == options.global_batch->value;
  if (!(is_same || is_open || is_repeated) || !batch.is_number_integer()) return options;
  BatchOptions kept = options;
  kept.global_batch = ChosenNumber{batch.get<std::int64_t>()};
  const auto divides = [&](std::int64_t parts) { return kept.global_batch->value % parts == 0; };
  const bool is_shared = divides(std::int64_t{ranks} * options.accumulate);
  if (options.virtual_ranks || is_shared || !divides(options.accumulate)) return kept;
  int nearest = ranks;
  while (nearest > 1 && !divides(std::int64_t{nearest} * options.accumulate)) --nearest;
  throw Error(Failure::usage, fmt::format("the checkpoint's global batch of {} is not divisible by {} micro-batches "
                                          "({}). A resumed training keeps its global batch. Start it on {}.",
                                          kept.global_batch->value, std::int64_t{ranks} * options.accumulate,
                                          ranks_and_steps(ranks, options.accumulate, name), counted(nearest, name)));
}

Origin this_origin(const Session& session, int trainers, const std::string& gradients) {
  return {trainers, session.device().description(), gradients, session.device().plan_conditions(),
          versions_used(session.backend->libraries())};
}

std::string origin_difference(const Origin& earlier, const Origin& now, Sums sums) {
  std::string text;
  const auto add = [&text](const std::string& before, const std::string& after) {
    if (before != after) text += fmt::format("{}{} instead of {}", text.empty() ? "" : ", ", after, before);
  };
  if (sums == Sums::rounded) {
    add(counted(earlier.ranks, "rank"), counted(now.ranks, "rank"));
    if (earlier.ranks == now.ranks) add(earlier.gradients, now.gradients);
  }
  add(earlier.plan_conditions, now.plan_conditions);
  for (const auto& [library, version] : now.versions) {
    const auto before = earlier.versions.find(library);
    add(fmt::format("{} {}", library, before == earlier.versions.end() ? "(none)" : before->second),
        fmt::format("{} {}", library, version));
  }
  return text;
}

std::string instruction_set_in(std::string_view plan_conditions) {
  const std::size_t first = plan_conditions.find(": ") + 2;
  return cpu::option_named(plan_conditions.substr(first, plan_conditions.find(',') - first));
}

std::string same_bits_advice(const Origin& earlier, const Origin& now, Sums sums) {
  const auto is_cpu = [](const Origin& origin) { return origin.plan_conditions.starts_with("cpu"); };
  std::string text;
  if (sums == Sums::rounded && earlier.ranks != now.ranks) {
    text += " A training started with --virtual-ranks is bitwise identical on any number of ranks.";
  }
  if (is_cpu(earlier) && is_cpu(now) && earlier.plan_conditions != now.plan_conditions) {
    const std::string option = instruction_set_in(earlier.plan_conditions);
    text += fmt::format(" With --instruction-set {}, it is bitwise identical on any processor that supports it.",
                        option.empty() ? "(the earlier one)" : option);
  }
  return text;
}

}  // namespace lockstep
