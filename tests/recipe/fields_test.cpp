#include "recipe/fields.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "device/cpu/cpu_device.hpp"
#include "support/field_examples.hpp"
#include "support/messages.hpp"

namespace lockstep::fields_test {

// Convert to anything of their kind: as many of them as an aggregate takes are its members. Nobody calls them.
// NOLINTBEGIN(google-explicit-constructor)
struct AnyScalar {
  template <typename Value>
  requires(!std::is_class_v<Value>) operator Value() const;
};
struct AnyClass {
  template <typename Value>
  requires std::is_class_v<Value>
  operator Value() const;
};
// NOLINTEND(google-explicit-constructor)

template <typename Aggregate, typename... Members>
consteval std::size_t members_of() {
  // A class first: a scalar in the place of an inner aggregate would stand for its first member.
  if constexpr (requires { Aggregate{Members()..., AnyClass()}; }) {
    return members_of<Aggregate, Members..., AnyClass>();
  } else if constexpr (requires { Aggregate{Members()..., AnyScalar()}; }) {
    return members_of<Aggregate, Members..., AnyScalar>();
  } else {
    return sizeof...(Members);
  }
}

// `Whole` has one member of each of the types `Inner`, whose members are counted in their place.
template <typename Whole, typename... Inner>
consteval std::size_t leaves_of() {
  return members_of<Whole>() - sizeof...(Inner) + (members_of<Inner>() + ... + 0);
}

std::size_t entries(Field::Part part) {
  return static_cast<std::size_t>(std::ranges::count(training_fields(), part, &Field::part));
}

std::string example(const Field& field) {
  const auto found = field_examples().find(field.name);
  return found == field_examples().end() ? "no example" : found->second;
}

const Field& field_named(std::string_view name) { return *std::ranges::find(training_fields(), name, &Field::name); }

TEST(FieldsTest, every_member_of_recipe_and_run_plan_has_an_entry) {
  static_assert(members_of<BatchOptions>() == 5 && members_of<CheckpointInterval>() == 3);
  EXPECT_EQ(entries(Field::Part::recipe),
            (leaves_of<Recipe, ImageOptions, RandomTransforms, ShuffleOptions, BatchOptions, LearningRate,
                       OptimizerOptions, OuterOptimizer, GradientClip, EmaOptions, Arithmetic, InitialWeights>()));
  // A checkpoint's interval is one value.
  constexpr std::size_t checkpoints = leaves_of<CheckpointOptions, KeepRule>();
  EXPECT_EQ(entries(Field::Part::run), (leaves_of<RunOptions, DeviceChoice, ReducerOptions>()) - 1 + checkpoints);
}

TEST(FieldsTest, names_are_taken_once_and_every_entry_says_what_it_is) {
  std::set<std::string> names;
  for (const Field& field : training_fields()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_TRUE(field.also.empty() || names.insert(field.also).second) << field.also;
    EXPECT_FALSE(field.help.empty()) << field.name;
    EXPECT_EQ(field.type_name.empty(), field.form == Field::Form::flag) << field.name;
    EXPECT_TRUE(field_examples().contains(field.name)) << field.name << " has no example in support/field_examples.hpp";
  }
}

TEST(FieldsTest, a_value_comes_back_as_it_was_written_and_moves_its_own_field_alone) {
  for (const Field& field : training_fields()) {
    Settings settings;
    EXPECT_EQ(field.validation_error(example(field)), "") << field.name;
    field.set(settings, {example(field)});
    EXPECT_EQ(field.texts(settings), std::vector<std::string>{example(field)}) << field.name;
    for (const Field& other : training_fields()) {
      const bool is_moved = json_of(other, settings) != json_of(other, Settings());
      EXPECT_EQ(is_moved, other.name == field.name) << field.name << " moves " << other.name;
    }
  }
}

TEST(FieldsTest, json_says_what_the_text_says) {
  for (const Field& field : training_fields()) {
    Settings settings;
    field.set(settings, {example(field)});
    Settings copy;
    // Through text, as files keep it.
    const nlohmann::json json = nlohmann::json::parse(json_of(field, settings).dump());
    EXPECT_EQ(set_from_json(field, copy, json), "") << field.name;
    EXPECT_EQ(field.texts(copy), field.texts(settings)) << field.name;
    Settings untouched;
    const bool is_missing = json_of(field, Settings()).is_null() && !field.may_be_unset;
    EXPECT_EQ(set_from_json(field, untouched, json_of(field, Settings())).empty(), !is_missing) << field.name;
    EXPECT_EQ(json_of(field, untouched), json_of(field, Settings())) << field.name;
  }
}

// 0.9 was told as 0.8999999761581421.
TEST(FieldsTest, numbers_are_plain_decimals_in_json) {
  Settings settings;
  settings.recipe.optimizer.momentum = 0.9F;
  settings.recipe.optimizer.weight_decay = 5e-4F;
  settings.recipe.learning_rate.rate = 0.1;
  settings.recipe.learning_rate.milestones = {1, 2.5};
  const nlohmann::json recipe = json_of(settings, Field::Part::recipe);
  EXPECT_EQ(recipe["momentum"].dump(), "0.9");
  EXPECT_EQ(recipe["weight-decay"].dump(), "0.0005");
  EXPECT_EQ(recipe["lr"].dump(), "0.1");
  EXPECT_EQ(recipe["milestones"].dump(), "[1.0,2.5]");
  EXPECT_EQ(recipe["warmup"].dump(), "null");
  EXPECT_EQ(recipe["nesterov"].dump(), "false");
  EXPECT_EQ(recipe.size(), entries(Field::Part::recipe));
}

TEST(FieldsTest, what_is_no_value_of_a_field_is_refused_in_json) {
  const auto answer = [](const char* name, const nlohmann::json& value) {
    Settings settings;
    return set_from_json(field_named(name), settings, value);
  };
  EXPECT_EQ(answer("epochs", 3), "");
  EXPECT_EQ(answer("epochs", 3.0), "");
  expect_message(answer("epochs", 0), {"0", "1000000"});
  expect_message(answer("epochs", -1), {"-1", "1000000"});
  expect_message(answer("epochs", "3"), {});
  expect_message(answer("epochs", true), {});
  expect_message(answer("epochs", nullptr), {});
  expect_message(answer("epochs", {1, 2}), {});
  expect_message(answer("nesterov", 1), {});
  expect_message(answer("schedule", "linear"), {"linear"});
  expect_message(answer("milestones", {1, "two"}), {});
  expect_message(answer("milestones", nlohmann::json::object()), {});
  expect_message(answer("time-limit", "90"), {"90"});
  expect_message(answer("output", ""), {});
}

TEST(FieldsTest, colours_are_stated_at_once_or_one_after_another) {
  const Field& field = field_named("color-jitter");
  const auto read = [&](const char* text) {
    Settings settings;
    EXPECT_EQ(field.validation_error(text), "") << text;
    field.set(settings, {text});
    return std::pair(settings.recipe.images.transforms.jitter.value(), field.texts(settings).front());
  };
  EXPECT_EQ(read("0.4"), std::pair(ColorJitter({0.4F, 0.4F, 0.4F}), std::string("0.4")));
  EXPECT_EQ(read("0.4,0.40,4e-1").second, "0.4");
  EXPECT_EQ(read("0,0.3,1"), std::pair(ColorJitter({0, 0.3F, 1}), std::string("0,0.3,1")));
  expect_message(field.validation_error("0.4,0.4"), {"0.4,0.4"});
  for (const char* text : {"", ",", "0.4,", "0.4,0.4,0.4,", "0.1,0.1,0.1,0.1", "1.1", "-0.1", "0.4 0.4 0.4", "nan"}) {
    EXPECT_NE(field.validation_error(text), "") << text;
  }
}

// A training would divide by it, or wait for ever.
TEST(FieldsTest, zero_is_taken_only_where_it_means_something) {
  std::set<std::string> taken;
  for (const Field& field : training_fields()) {
    const bool is_number =
        field.json_type == Field::JsonType::number || field.json_type == Field::JsonType::whole_number;
    if (is_number && field.validation_error("0").empty()) taken.insert(field.name);
  }
  EXPECT_EQ(taken, (std::set<std::string>{"seed",
                                          "trainers",
                                          "crop-padding",
                                          "label-smoothing",
                                          "momentum",
                                          "muon-momentum",
                                          "outer-momentum",
                                          "weight-decay",
                                          "beta1",
                                          "ema",
                                          "warmup-from",
                                          "lr-end",
                                          "beta2",
                                          "lr-batch",
                                          "warmup",
                                          "milestones",
                                          "threads",
                                          "gpu-memory-limit",
                                          "bucket-mib",
                                          "hang-timeout",
                                          "audit-every",
                                          "keep-best",
                                          "sync-batch-norm",
                                          "ema-ramp"}));
}

TEST(FieldsTest, null_unsets_what_may_be_unset) {
  std::set<std::string> unset;
  for (const Field& field : training_fields()) {
    Settings settings;
    field.set(settings, {example(field)});
    if (!set_from_json(field, settings, nullptr).empty()) continue;
    unset.insert(field.name);
    EXPECT_EQ(field.texts(settings), std::vector<std::string>()) << field.name;
  }
  for (const char* name : {"output", "init-from", "warmup", "virtual-ranks"}) EXPECT_TRUE(unset.contains(name)) << name;
  for (const char* name : {"augment", "epochs", "schedule"}) EXPECT_FALSE(unset.contains(name)) << name;
}

TEST(FieldsTest, a_list_takes_the_place_of_the_one_before) {
  Settings settings;
  field_named("milestones").set(settings, {"1", "2"});
  field_named("milestones").set(settings, {"3"});
  EXPECT_EQ(settings.recipe.learning_rate.milestones, (std::vector<double>{3}));
}

TEST(FieldsTest, what_is_stated_for_each_rank_takes_the_place_of_the_global_batch) {
  Settings settings;
  settings.recipe.batch.global_batch = {128};
  field_named("batch-per-rank").set(settings, {"32"});
  EXPECT_FALSE(settings.recipe.batch.global_batch.has_value());
  EXPECT_EQ(settings.recipe.batch.batch_per_rank, 32);
}

// train() takes nothing else, so no caller trains with settings that --print-recipe would refuse.
TEST(RunOptionsTest, settings_that_no_training_takes_are_refused) {
  static_assert(!std::is_convertible_v<Settings, ValidSettings>);
  Settings settings;
  settings.recipe.model = "lenet";
  settings.run.note = "kept";
  EXPECT_EQ(ValidSettings(settings).recipe().model, "lenet");
  EXPECT_EQ(ValidSettings(settings).run().note, "kept");
  settings.recipe.model = "banana";
  expect_error(Failure::usage, {"banana"}, [&] { ValidSettings{settings}; });
  settings.recipe.model = "lenet";
  settings.run.checkpoints.folder = "none";
  expect_error(Failure::usage, {"--checkpoints none", "--keep-latest 1", "./none"}, [&] { ValidSettings{settings}; });
  settings.run.checkpoints.folder = "./none";
  EXPECT_EQ(ValidSettings(settings).run().checkpoints.folder, "./none");
}

TEST(RunOptionsTest, virtual_ranks_ask_for_a_deterministic_device) {
  Settings settings;
  EXPECT_FALSE(device_options(settings.recipe, settings.run).deterministic);
  settings.recipe.batch.virtual_ranks = 4;
  EXPECT_TRUE(device_options(settings.recipe, settings.run).deterministic);
  settings.run.device.deterministic = true;  // whole numbers need no order
  EXPECT_FALSE(device_options(settings.recipe, settings.run).fixed_order);
}

TEST(RunOptionsTest, the_device_gets_all_that_both_say_of_it) {
  Settings settings;
  for (const Field& field : training_fields()) {
    if (field.group == FieldGroup::device) field.set(settings, {example(field)});
  }
  const DeviceOptions options = device_options(settings.recipe, settings.run);
  EXPECT_EQ(options.name, "cpu");
  EXPECT_EQ(options.threads, 2);
  EXPECT_EQ(options.instruction_set, "avx2");
  EXPECT_TRUE(options.direct_convolutions);
  EXPECT_EQ(options.precision, DType::bf16);
  EXPECT_TRUE(options.verbose);
  EXPECT_TRUE(options.tf32);
  EXPECT_TRUE(options.deterministic);
  EXPECT_TRUE(options.fixed_order);
  EXPECT_EQ(options.gpu_memory_mib, 2048);
  EXPECT_FALSE(options.graphs);
  EXPECT_EQ(options.plan_folder, "plans");
}

// A recipe made in code with virtual ranks was trained on whatever device was there.
TEST(RunOptionsTest, a_device_that_was_opened_for_another_recipe_is_refused) {
  Settings settings;
  settings.run.device.name = "cpu";
  settings.run.device.threads = 1;
  settings.run.device.instruction_set = "baseline";
  const std::unique_ptr<Device> device = cpu::open_cpu_device(device_options(settings.recipe, settings.run));
  EXPECT_NO_THROW(require_follows(*device, settings.recipe));
  settings.recipe.arithmetic.tf32 = true;  // which a CPU leaves out
  EXPECT_NO_THROW(require_follows(*device, settings.recipe));
  settings.recipe.arithmetic.precision = DType::bf16;
  expect_error(Failure::usage, {device->description()}, [&] { require_follows(*device, settings.recipe); });
}

TEST(RunOptionsTest, sums_are_exact_with_virtual_ranks_and_then_do_not_travel_rounded) {
  Settings settings;
  EXPECT_EQ(all_reduce_options(settings.recipe, settings.run).sums, Sums::rounded);
  EXPECT_EQ(all_reduce_options(settings.recipe, settings.run).bucket_bytes, 4 << 20);
  settings.recipe.batch.virtual_ranks = 4;
  EXPECT_EQ(all_reduce_options(settings.recipe, settings.run).sums, Sums::reproducible);
  settings.recipe.wire = DType::bf16;
  expect_error(Failure::usage, {"--virtual-ranks"}, [&] { all_reduce_options(settings.recipe, settings.run); });
}

}  // namespace lockstep::fields_test
