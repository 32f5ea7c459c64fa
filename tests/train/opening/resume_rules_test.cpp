#include "train/opening/resume_rules.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/cpu/cpu_device.hpp"
#include "device/cpu/instruction_sets/instruction_set.hpp"
#include "recipe/fields.hpp"
#include "support/field_examples.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "train/rank_places.hpp"

namespace lockstep::resume_rules_test {

Recipe recipe() {
  Recipe recipe;
  recipe.model = "resnet20";
  recipe.batch.global_batch = {128};
  return recipe;
}

Manifest data() {
  Manifest manifest;
  manifest.root_hash = "abc";
  return manifest;
}

nlohmann::json fixed(const Recipe& recipe, const Manifest& manifest = data()) {
  // Through text, as a checkpoint keeps it.
  return nlohmann::json::parse(fixed_recipe(recipe, manifest).dump());
}

void require_same(const nlohmann::json& earlier, const nlohmann::json& now) {
  require_same_recipe(earlier, now, "runs/old");
}

// What a resume with the recipe after `change` says.
std::string answer(const std::function<void(Recipe&)>& change) {
  Recipe changed = recipe();
  change(changed);
  return message_of(Failure::usage, [&] { require_same(fixed(recipe()), fixed(changed)); });
}

void expect_refusal(const std::string& message, const std::string& field, const std::string& before,
                    const std::string& now) {
  expect_message(message, {"--" + field + " " + before, now, "'runs/old'", "--resume never"});
}

std::string describe_value(const nlohmann::json& value) { return value.is_null() ? "unset" : value.dump(); }

// An option that was left out of the list silently changed a resumed training.
TEST(ResumeRulesTest, every_field_is_refused_or_may_change_as_its_entry_says) {
  for (const Field& field : training_fields()) {
    Settings changed{recipe(), {}};
    field.set(changed, {field_examples().at(field.name)});
    const std::string message =
        message_of(Failure::usage, [&] { require_same(fixed(recipe()), fixed(changed.recipe)); });
    if (field.on_resume == Field::OnResume::may_change) {
      EXPECT_EQ(message, "no error") << field.name;
    } else {
      // Some bring others along: --batch-per-rank takes back --global-batch.
      EXPECT_THAT(message, testing::HasSubstr(fmt::format("--{} {}", field.name,
                                                          describe_value(json_of(field, Settings{recipe(), {}})))));
      EXPECT_THAT(message, testing::HasSubstr(describe_value(json_of(field, changed))));
    }
  }
}

TEST(ResumeRulesTest, of_a_recipe_epochs_and_what_it_began_with_may_change) {
  std::vector<std::string> names;
  for (const Field& field : training_fields()) {
    if (field.part == Field::Part::recipe && field.on_resume == Field::OnResume::may_change)
      names.push_back(field.name);
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"init-from", "new-head", "fresh-weights", "epochs", "max-steps", "early-stop"}));
}

nlohmann::json summary_of(const Recipe& recipe) {
  return {{"recipe", json_of(Settings{recipe, {}}, Field::Part::recipe)}, {"data_hash", "abc"}};
}

// Another training's results in the same folder were taken for its own.
TEST(ResumeRulesTest, a_summary_tells_whether_it_is_of_another_training) {
  for (const Field& field : training_fields()) {
    Settings changed{recipe(), {}};
    field.set(changed, {field_examples().at(field.name)});
    const bool depends_on_the_place =
        field.name == "global-batch" || field.name == "augment" || field.on_resume == Field::OnResume::may_change;
    EXPECT_EQ(may_describe(summary_of(changed.recipe), fixed(recipe())), depends_on_the_place) << field.name;
  }
  Manifest other = data();
  other.root_hash = "def";
  EXPECT_FALSE(may_describe(summary_of(recipe()), fixed(recipe(), other)));
  EXPECT_TRUE(may_describe(nlohmann::json::object(), fixed(recipe()))) << "there is none";
  EXPECT_TRUE(may_describe({{"recipe", 7}}, fixed(recipe()))) << "it is damaged";
}

// Both learn the same weights, bit for bit.
TEST(ResumeRulesTest, servers_may_come_and_go_but_weights_of_ranks_may_not) {
  const auto with = [](Sync sync) {
    Recipe one = recipe();
    one.sync = sync;
    return fixed(one);
  };
  EXPECT_NO_THROW(require_same(with(Sync::all_reduce), with(Sync::servers)));
  EXPECT_NO_THROW(require_same(with(Sync::servers), with(Sync::all_reduce)));
  for (const Sync sync : {Sync::all_reduce, Sync::servers}) {
    for (const Sync other : {Sync::local, Sync::async_servers}) {
      expect_error(Failure::usage, {"--sync"}, [&] { require_same(with(sync), with(other)); });
      expect_error(Failure::usage, {"--sync"}, [&] { require_same(with(other), with(sync)); });
    }
  }
}

TEST(ResumeRulesTest, all_that_differs_is_named) {
  expect_message(answer([](Recipe& changed) {
                   changed.seed = 7;
                   changed.images.side = 40;
                 }),
                 {"--image-size", "runs/old"});
}

// Checkpoints of version 0.1 hold 0.9 as a float's 0.8999999761581421.
TEST(ResumeRulesTest, the_digits_of_earlier_versions_are_the_same_number) {
  nlohmann::json earlier = fixed(recipe());
  EXPECT_EQ(earlier["momentum"].dump(), "0.9");
  earlier["momentum"] = 0.8999999761581421;
  earlier["weight-decay"] = 0.0005000000237487257;
  earlier["label-smoothing"] = 0;
  EXPECT_NO_THROW(require_same(earlier, fixed(recipe())));
  earlier["momentum"] = 0.89;
  expect_refusal(message_of(Failure::usage, [&] { require_same(earlier, fixed(recipe())); }), "momentum", "0.89",
                 "0.9");
}

// Other data may bring another augmentation along, which was blamed in their place.
TEST(ResumeRulesTest, other_data_are_named_first) {
  Manifest other = data();
  other.root_hash = "def";
  Recipe changed = recipe();
  changed.images.augmentation = Augmentation::crop;
  expect_refusal(message_of(Failure::usage, [&] { require_same(fixed(recipe()), fixed(changed, other)); }),
                 "data (hash)", "\"abc\"", "\"def\"");
}

TEST(ResumeRulesTest, what_may_not_change_is_refused_by_name) {
  expect_refusal(answer([](Recipe& changed) { changed.learning_rate.warmup_epochs = 2; }), "warmup", "unset", "2.0");
  expect_refusal(answer([](Recipe& changed) { changed.learning_rate.milestones = {3}; }), "milestones", "[]", "[3.0]");
  expect_refusal(answer([](Recipe& changed) { changed.batch.global_batch = {64}; }), "global-batch", "128", "64");
}

// What a place brings along may change, what the user chose may not: of two settings of one device, one each.
TEST(ResumeRulesTest, another_instruction_set_is_told_and_other_convolutions_are_refused) {
  const auto open = [](const std::string& set, bool direct) {
    return cpu::open_cpu_device({.threads = 1, .instruction_set = set, .direct_convolutions = direct});
  };
  const auto fixed_on = [](const Device& device) { return fixed(completed(recipe(), 128, data(), device)); };
  const std::unique_ptr<Device> automatic = open("baseline", false);
  const std::unique_ptr<Device> direct = open("baseline", true);
  expect_refusal(message_of(Failure::usage, [&] { require_same(fixed_on(*direct), fixed_on(*automatic)); }),
                 "convolutions", "\"direct\"", "\"auto\"");
  if (!cpu::runs_here(cpu::InstructionSet::avx2)) GTEST_SKIP() << "this processor has one instruction set";
  const std::unique_ptr<Device> wide = open("avx2", false);
  EXPECT_NO_THROW(require_same(fixed_on(*automatic), fixed_on(*wide)));
  const auto origin = [](const Device& device) { return Origin{1, "", "", device.plan_conditions(), {}}; };
  expect_message(origin_difference(origin(*automatic), origin(*wide), Sums::reproducible), {});
}

// Of an earlier version, which knew no other way than what is now the default.
TEST(ResumeRulesTest, a_field_that_a_checkpoint_lacks_stands_at_its_default) {
  nlohmann::json earlier = fixed(recipe());
  earlier.erase("optimizer");
  EXPECT_NO_THROW(require_same(earlier, fixed(recipe())));
  Recipe changed = recipe();
  changed.optimizer.kind = OptimizerKind::lars;
  expect_refusal(message_of(Failure::usage, [&] { require_same(earlier, fixed(changed)); }), "optimizer", "\"sgd\"",
                 "\"lars\"");
  earlier.erase("model");
  expect_refusal(message_of(Failure::usage, [&] { require_same(earlier, fixed(recipe())); }), "model", "unset",
                 "\"resnet20\"");
}

// Earlier versions did not know it: their checkpoints and those of trainings without it are the same, byte for byte.
TEST(ResumeRulesTest, an_option_that_is_new_is_recorded_where_it_is_set_and_may_not_be_left_out) {
  EXPECT_FALSE(fixed(recipe()).contains("clip-value"));
  Recipe clipping = recipe();
  clipping.optimizer.clip.value = 0.5F;
  EXPECT_EQ(fixed(clipping)["clip-value"], 0.5);
  EXPECT_NO_THROW(require_same(fixed(clipping), fixed(clipping)));
  expect_refusal(message_of(Failure::usage, [&] { require_same(fixed(clipping), fixed(recipe())); }), "clip-value",
                 "0.5", "unset");
  expect_refusal(message_of(Failure::usage, [&] { require_same(fixed(recipe()), fixed(clipping)); }), "clip-value",
                 "unset", "0.5");
}

TEST(ResumeRulesTest, a_completed_recipe_names_the_global_batch_that_came_out) {
  const std::unique_ptr<Device> device = cpu::open_cpu_device({.threads = 1});
  Recipe each = recipe();
  each.batch = {std::nullopt, 32, 1};
  EXPECT_EQ(completed(each, 96, data(), *device).batch.global_batch->value, 96);
  EXPECT_EQ(completed(each, 96, data(), *device).batch.batch_per_rank, 32);
}

TEST(ResumeRulesTest, the_automatic_augmentation_is_the_one_it_stands_for) {
  const std::unique_ptr<Device> device = cpu::open_cpu_device({.threads = 1});
  const auto augmentation = [&](std::optional<Augmentation> stated) {
    Recipe one = recipe();
    one.images.augmentation = stated;
    return fixed(completed(one, 128, data(), *device))["augment"];
  };
  EXPECT_EQ(augmentation(std::nullopt), "crop-flip");
  EXPECT_EQ(augmentation(training_rules({}, data(), 0).augmentation), "crop-flip");
  EXPECT_EQ(augmentation(Augmentation::none), "none");
}

// The global batch of a resumed training; 0: it stays as it is stated.
std::int64_t resumed(const BatchOptions& plan, const nlohmann::json& earlier, int ranks = 1) {
  return batch_of_resumed(plan, earlier, ranks).global_batch.value_or(ChosenNumber{}).value;
}

TEST(ResumeRulesTest, a_batch_stated_for_each_rank_keeps_the_global_batch) {
  Recipe each = recipe();
  each.batch = {ChosenNumber{128}, 32, 1};
  const nlohmann::json earlier = fixed(each);
  EXPECT_EQ(resumed(each.batch, earlier), 128);
  EXPECT_EQ(resumed({std::nullopt, 16, 1}, earlier), 0);
  EXPECT_EQ(resumed({std::nullopt, 32, 2}, earlier), 0);
  EXPECT_EQ(resumed({ChosenNumber{64}, std::nullopt, 1}, earlier), 64);
  nlohmann::json damaged = earlier;
  damaged["global-batch"] = "many";
  EXPECT_EQ(resumed({std::nullopt, 32, 1}, damaged), 0);
}

TEST(ResumeRulesTest, a_batch_that_nobody_stated_stays_what_it_was) {
  Recipe fit_global_batch = recipe();
  fit_global_batch.batch.global_batch = {126};
  const nlohmann::json earlier = fixed(fit_global_batch);
  const BatchOptions usual{ChosenNumber{128, ChosenBy::program}, std::nullopt, 1};
  for (const int ranks : {1, 2, 3}) EXPECT_EQ(resumed(usual, earlier, ranks), 126);
  expect_error(Failure::usage, {"126", "5 ranks", "3 ranks"}, [&] { resumed(usual, earlier, 5); });
  const BatchOptions repeated{ChosenNumber{126}, std::nullopt, 1};
  expect_error(Failure::usage, {"126", "5 ranks", "3 ranks"}, [&] { resumed(repeated, earlier, 5); });
  expect_error(Failure::usage, {"126", "5 trainers", "3 trainers"},
               [&] { batch_of_resumed(usual, earlier, 5, name_of_trainer(5, 7)); });
}

TEST(ResumeRulesTest, another_way_of_summing_is_named_where_the_ranks_are_the_same) {
  expect_message(origin_difference({2, "cpu", "mpi", "", {}}, {2, "cpu", "shared memory", "", {}}, Sums::rounded), {});
  expect_message(origin_difference({2, "cpu", "mpi", "", {}}, {1, "cpu", "none", "", {}}, Sums::rounded), {});
}

TEST(ResumeRulesTest, what_the_bits_depend_on_is_compared_and_named) {
  const Origin earlier{2, "cpu: some, 1 thread", "mpi", "cpu: AVX2", {{"HDF5", "1.10"}, {"Open MPI", "4.1"}}};
  EXPECT_EQ(origin_difference(earlier, earlier, Sums::rounded), "");
  const Origin other{
      1, "cpu: other, 2 threads", "shared memory", "cpu: AVX-512", {{"HDF5", "1.10"}, {"Open MPI", "5.0"}, {"x", "1"}}};
  expect_message(origin_difference(earlier, other, Sums::rounded), {});
}

TEST(ResumeRulesTest, what_would_have_kept_the_bits_is_named) {
  const Origin earlier{2, "", "mpi", "cpu: AVX2, f32", {}};
  EXPECT_EQ(same_bits_advice(earlier, earlier, Sums::rounded), "");
  expect_message(same_bits_advice(earlier, {1, "", "mpi", "cpu: AVX2, f32", {}}, Sums::rounded), {"--virtual-ranks"});
  expect_message(same_bits_advice(earlier, {1, "", "mpi", "cpu: AVX-512, f32", {}}, Sums::reproducible),
                 {"--instruction-set"});
  expect_message(
      same_bits_advice({1, "", "", "cpu: AMX BF16, bf16", {}}, {1, "", "", "cpu: AVX2, bf16", {}}, Sums::reproducible),
      {"--instruction-set"});
  expect_message(same_bits_advice({1, "", "", "cpu: SVE", {}}, {1, "", "", "cpu: AVX2, bf16", {}}, Sums::reproducible),
                 {"--instruction-set"});
  EXPECT_EQ(same_bits_advice(earlier, {2, "", "mpi", "cuda: a card", {}}, Sums::reproducible), "");
}

TEST(ResumeRulesTest, with_exact_sums_the_number_of_ranks_is_of_no_account) {
  const Origin earlier{2, "cpu: some, 1 thread", "mpi", "cpu: AVX2", {}};
  const Origin more{12, "cpu: other, 3 threads", "shared memory", "cpu: AVX2", {}};
  EXPECT_EQ(origin_difference(earlier, more, Sums::reproducible), "");
}

}  // namespace lockstep::resume_rules_test
