#include "files/checkpoint/training_state.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "base/text/json_text.hpp"

namespace lockstep {

namespace {

using Json = nlohmann::json;

[[noreturn]] void fault(const char* field) {
  throw std::runtime_error(fmt::format("field '{}' of its state is missing or invalid", field));
}

const Json& member(const Json& object, const char* field) {
  if (!object.is_object() || !object.contains(field)) fault(field);
  return object.at(field);
}

std::int64_t count_of(const Json& object, const char* field) {
  constexpr std::int64_t largest = std::int64_t{1} << 53;
  const Json& value = member(object, field);
  if (!value.is_number_integer() || value < 0 || value > largest) fault(field);
  return value.get<std::int64_t>();
}

double number_of(const Json& object, const char* field) {
  const Json& value = member(object, field);
  if (!value.is_number() || !std::isfinite(value.get<double>())) fault(field);
  return value.get<double>();
}

// A non-finite loss is stored as null, because JSON has no NaN or infinity.
double loss_of(const Json& object, const char* field) {
  return member(object, field).is_null() ? std::numeric_limits<double>::quiet_NaN() : number_of(object, field);
}

std::string text_of(const Json& object, const char* field) {
  const Json& value = member(object, field);
  if (!value.is_string()) fault(field);
  return value.get<std::string>();
}

Json json_of(const PlainTest& test) {
  Json json = {{"augmentation", test_augmentation_name(test.augmentation)}, {"accuracy", test.accuracy}};
  if (test.mean_accuracy) json["mean_accuracy"] = *test.mean_accuracy;
  return json;
}

Json json_of(const ReportState& report) {
  Json json = {{"stretch_loss_sum", report.stretch.loss_sum}, {"stretch_correct", report.stretch.correct},
               {"stretch_samples", report.stretch.samples},   {"stretch_start", report.stretch_start},
               {"trained_samples", report.trained_samples},   {"seconds", report.seconds},
               {"training_seconds", report.training_seconds}, {"test_loss", report.test_loss},
               {"test_accuracy", report.test_accuracy},       {"score", report.score}};
  if (report.mean_test) {
    json["mean_test_loss"] = report.mean_test->loss;
    json["mean_test_accuracy"] = report.mean_test->accuracy;
  }
  if (report.plain_test) json["plain_test"] = json_of(*report.plain_test);
  if (report.plain_validation) json["plain_validation"] = *report.plain_validation;
  return json;
}

std::optional<TestFigures> mean_test_of(const Json& json) {
  if (!json.contains("mean_test_accuracy")) return std::nullopt;
  return TestFigures{loss_of(json, "mean_test_loss"), number_of(json, "mean_test_accuracy")};
}

std::optional<PlainTest> plain_test_of(const Json& json) {
  if (!json.contains("plain_test")) return std::nullopt;
  const Json& test = json.at("plain_test");
  const auto* const augmentation = find_choice(test_augmentations, text_of(test, "augmentation"));
  if (augmentation == nullptr) fault("augmentation");
  PlainTest plain{augmentation->value, number_of(test, "accuracy")};
  if (test.contains("mean_accuracy")) plain.mean_accuracy = number_of(test, "mean_accuracy");
  return plain;
}

ReportState report_of(const Json& json) {
  return {{loss_of(json, "stretch_loss_sum"), count_of(json, "stretch_correct"), count_of(json, "stretch_samples")},
          number_of(json, "stretch_start"),
          count_of(json, "trained_samples"),
          number_of(json, "seconds"),
          number_of(json, "training_seconds"),
          loss_of(json, "test_loss"),
          number_of(json, "test_accuracy"),
          number_of(json, "score"),
          mean_test_of(json),
          plain_test_of(json),
          json.contains("plain_validation") ? std::optional(number_of(json, "plain_validation")) : std::nullopt};
}

Json json_of(const TrainingProgress& progress) {
  return {{"step", progress.step},
          {"epoch", progress.epoch},
          {"samples", progress.samples},
          {"tested_step", progress.tested_step}};
}

TrainingProgress progress_of(const Json& json) {
  const TrainingProgress progress{count_of(json, "step"), count_of(json, "epoch"), count_of(json, "samples"),
                                  count_of(json, "tested_step")};
  if (progress.tested_step > progress.step) fault("tested_step");
  return progress;
}

// A power of two from 1 to the scaler's maximum.
std::optional<LossScale> loss_scale_of(const Json& json) {
  if (json.is_null()) return std::nullopt;
  const double scale = number_of(json, "scale");
  int exponent = 0;
  if (std::frexp(scale, &exponent) != 0.5 || scale < 1 || scale > largest_loss_scale) fault("scale");
  return LossScale{static_cast<float>(scale), static_cast<float>(count_of(json, "clean_steps")),
                   static_cast<float>(count_of(json, "skipped_steps"))};
}

Origin origin_of(const Json& json) {
  Origin origin;
  const std::int64_t ranks = count_of(json, "ranks");
  if (ranks < 1 || ranks > std::numeric_limits<int>::max()) fault("ranks");
  origin.ranks = static_cast<int>(ranks);
  origin.device = text_of(json, "device");
  origin.gradients = text_of(json, "gradients");
  origin.plan_conditions = text_of(json, "plan_conditions");
  const Json& versions = member(json, "versions");
  if (!versions.is_object()) fault("versions");
  for (const auto& [library, version] : versions.items()) origin.versions[library] = text_of(versions, library.c_str());
  return origin;
}

std::optional<EarlyStopState> early_stop_of(const Json& json) {
  if (!json.contains("early_stop")) return std::nullopt;
  const Json& state = json.at("early_stop");
  return EarlyStopState{text_of(state, "metric"), number_of(state, "best"), count_of(state, "best_step"),
                        count_of(state, "tests")};
}

std::map<std::int64_t, double> scores_of(const Json& json) {
  if (!json.is_array()) fault("scores");
  std::map<std::int64_t, double> scores;
  for (const Json& score : json) scores.emplace(count_of(score, "step"), number_of(score, "accuracy"));
  return scores;
}

// One number, or one for each rank.
std::vector<std::int64_t> own_updates_of(const Json& json) {
  if (!json.contains("own_updates")) return {};
  if (!json.at("own_updates").is_array()) return {count_of(json, "own_updates")};
  std::vector<std::int64_t> updates;
  for (const Json& of_rank : json.at("own_updates"))
    updates.push_back(count_of({{"own_updates", of_rank}}, "own_updates"));
  if (updates.size() < 2) fault("own_updates");
  return updates;
}

}  // namespace

std::string training_state_text(const TrainingState& state) {
  Json loss_scale;
  if (const std::optional<LossScale>& scale = state.loss_scale) {
    loss_scale = {{"scale", scale->scale},
                  {"clean_steps", std::llround(scale->clean_steps)},
                  {"skipped_steps", std::llround(scale->skipped_steps)}};
  }
  Json scores = Json::array();
  for (const auto& [step, accuracy] : state.scores) scores.push_back({{"step", step}, {"accuracy", accuracy}});
  Json json = {{"progress", json_of(state.progress)},
               {"report", json_of(state.report)},
               {"loss_scale", loss_scale},
               {"recipe", state.recipe},
               {"origin",
                {{"ranks", state.origin.ranks},
                 {"device", state.origin.device},
                 {"gradients", state.origin.gradients},
                 {"plan_conditions", state.origin.plan_conditions},
                 {"versions", state.origin.versions}}},
               {"kernel_plan", state.kernel_plan},
               {"scores", scores}};
  if (const std::optional<EarlyStopState>& stop = state.early_stop) {
    json["early_stop"] = {
        {"metric", stop->metric}, {"best", stop->best}, {"best_step", stop->best_step}, {"tests", stop->tests}};
  }
  if (state.own_updates.size() == 1) json["own_updates"] = state.own_updates.front();
  if (state.own_updates.size() > 1) json["own_updates"] = state.own_updates;
  return json_text(json);
}

TrainingState parse_training_state(const std::string& text) {
  const Json json = try_parse_json(text);
  if (!json.is_object()) throw std::runtime_error("its state is not valid JSON");
  TrainingState state;
  state.progress = progress_of(member(json, "progress"));
  state.report = report_of(member(json, "report"));
  state.loss_scale = loss_scale_of(member(json, "loss_scale"));
  state.recipe = member(json, "recipe");
  if (!state.recipe.is_object()) fault("recipe");
  state.origin = origin_of(member(json, "origin"));
  state.kernel_plan = text_of(json, "kernel_plan");
  state.scores = scores_of(member(json, "scores"));
  state.early_stop = early_stop_of(json);
  state.own_updates = own_updates_of(json);
  return state;
}

}  // namespace lockstep
