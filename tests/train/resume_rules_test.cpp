#include "train/resume_rules.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "device/cpu/instruction_sets/instruction_set.hpp"
#include "support/words_of.hpp"

namespace lockstep {
namespace {

Recipe recipe() {
  Recipe recipe;
  recipe.model = "resnet20";
  recipe.batch.global_batch = 128;
  return recipe;
}

Manifest data() {
  Manifest manifest;
  manifest.root_hash = "abc";
  return manifest;
}

nlohmann::json fixed(const Recipe& recipe) {
  // Through text, as a checkpoint keeps it.
  return nlohmann::json::parse(fixed_recipe(recipe, 128, data(), Arithmetic{}).dump());
}

// What a resume with the recipe after `change` says.
std::string answer(const std::function<void(Recipe&)>& change) {
  Recipe changed = recipe();
  change(changed);
  return words_of(Failure::usage,
                  [&] { require_same_recipe(fixed(recipe()), fixed_recipe(changed, 128, data(), Arithmetic{})); });
}

std::string refusal(const std::string& field, const std::string& before, const std::string& now) {
  return "the checkpoint was made with --" + field + " " + before + ", now it is " + now +
         " (a training goes on as it began). Take the earlier value, another --checkpoints, or --resume never.";
}

TEST(ResumeRulesTest, what_may_change_is_not_looked_at) {
  EXPECT_EQ(answer([](Recipe& changed) {
              changed.data = "elsewhere";
              changed.output = "elsewhere";
              changed.epochs = 99;
              changed.loader_threads = 7;
              changed.report_every = 3;
              changed.reduce.reducer = "mpi";
              changed.reduce.bucket_bytes = 1;
              changed.checkpoints.keep.latest = 9;
              changed.time_limit_seconds = 3;
            }),
            "no error");
}

TEST(ResumeRulesTest, what_may_not_change_is_refused_by_name) {
  EXPECT_EQ(answer([](Recipe& changed) { changed.model = "lenet"; }), refusal("model", "\"resnet20\"", "\"lenet\""));
  EXPECT_EQ(answer([](Recipe& changed) { changed.seed = 1; }), refusal("seed", "0", "1"));
  EXPECT_EQ(answer([](Recipe& changed) { changed.learning_rate.rate = 0.5; }), refusal("lr", "0.1", "0.5"));
  EXPECT_EQ(answer([](Recipe& changed) { changed.learning_rate.schedule = Schedule::step; }),
            refusal("schedule", "\"one-cycle\"", "\"step\""));
  EXPECT_EQ(answer([](Recipe& changed) { changed.learning_rate.warmup_epochs = 2; }), refusal("warmup", "null", "2.0"));
  EXPECT_EQ(answer([](Recipe& changed) { changed.learning_rate.milestones = {3}; }),
            refusal("milestones", "[]", "[3.0]"));
  EXPECT_EQ(answer([](Recipe& changed) { changed.sgd.kind = Momentum::nesterov; }),
            refusal("nesterov", "false", "true"));
  EXPECT_EQ(answer([](Recipe& changed) { changed.batch.accumulate = 2; }), refusal("accumulate", "1", "2"));
  EXPECT_EQ(answer([](Recipe& changed) { changed.reduce.wire = DType::bf16; }),
            refusal("wire", "\"fp32\"", "\"bf16\""));
  EXPECT_NE(answer([](Recipe& changed) { changed.sgd.momentum = 0.5F; }), "no error");
  EXPECT_NE(answer([](Recipe& changed) { changed.sgd.weight_decay = 0.5F; }), "no error");
  EXPECT_NE(answer([](Recipe& changed) { changed.sgd.decay_scope = DecayScope::weights_only; }), "no error");
  EXPECT_NE(answer([](Recipe& changed) { changed.label_smoothing = 0.5F; }), "no error");
  EXPECT_NE(answer([](Recipe& changed) { changed.augmentation = Augmentation::none; }), "no error");
  EXPECT_NE(answer([](Recipe& changed) { changed.learning_rate.base_batch = 0; }), "no error");
  EXPECT_NE(answer([](Recipe& changed) { changed.learning_rate.factor = 0.5; }), "no error");
}

TEST(ResumeRulesTest, other_data_another_precision_and_another_batch_are_refused) {
  const auto refused = [](const nlohmann::json& now) {
    return words_of(Failure::usage, [&] { require_same_recipe(fixed(recipe()), now); });
  };
  Manifest other = data();
  other.root_hash = "def";
  EXPECT_EQ(refused(fixed_recipe(recipe(), 128, other, Arithmetic{})), refusal("data (hash)", "\"abc\"", "\"def\""));
  EXPECT_EQ(refused(fixed_recipe(recipe(), 128, data(), {DType::bf16})), refusal("precision", "\"fp32\"", "\"bf16\""));
  EXPECT_EQ(refused(fixed_recipe(recipe(), 128, data(), {.tf32 = true})), refusal("tf32", "false", "true"));
  EXPECT_EQ(refused(fixed_recipe(recipe(), 128, data(), {.direct_convolutions = true})),
            refusal("convolutions", "\"auto\"", "\"direct\""));
  EXPECT_EQ(refused(fixed_recipe(recipe(), 64, data(), Arithmetic{})), refusal("global-batch", "128", "64"));
}

// What a place brings along may change, what the user chose may not: of two settings of one device, one each.
TEST(ResumeRulesTest, another_instruction_set_is_told_and_other_convolutions_are_refused) {
  const auto open = [](const std::string& set, bool direct) {
    return open_device({.name = "cpu", .threads = 1, .instruction_set = set, .direct_convolutions = direct});
  };
  const auto fixed_on = [](const Device& device) { return fixed_recipe(recipe(), 128, data(), arithmetic_of(device)); };
  const std::unique_ptr<Device> automatic = open("baseline", false);
  const std::unique_ptr<Device> direct = open("baseline", true);
  EXPECT_EQ(words_of(Failure::usage, [&] { require_same_recipe(fixed_on(*direct), fixed_on(*automatic)); }),
            refusal("convolutions", "\"direct\"", "\"auto\""));
  if (!cpu::runs_here(cpu::InstructionSet::avx2)) GTEST_SKIP() << "this processor has one instruction set";
  const std::unique_ptr<Device> wide = open("avx2", false);
  EXPECT_NO_THROW(require_same_recipe(fixed_on(*automatic), fixed_on(*wide)));
  const auto origin = [](const Device& device) { return Origin{1, "", "", device.plan_conditions(), {}}; };
  EXPECT_EQ(origin_difference(origin(*automatic), origin(*wide), Sums::exact),
            "cpu: AVX2, f32 instead of cpu: SSE2, f32");
}

TEST(ResumeRulesTest, the_automatic_augmentation_is_the_one_it_stands_for) {
  EXPECT_EQ(answer([](Recipe& changed) { changed.augmentation = default_augmentation(data().kind); }), "no error");
}

TEST(ResumeRulesTest, a_batch_stated_for_each_rank_keeps_the_global_batch) {
  Recipe each = recipe();
  each.batch = {std::nullopt, 32, 1};
  const nlohmann::json earlier = fixed(each);
  EXPECT_EQ(batch_of_resumed(each.batch, earlier).global_batch, 128);
  EXPECT_EQ(batch_of_resumed({std::nullopt, 16, 1}, earlier).global_batch, std::nullopt);
  EXPECT_EQ(batch_of_resumed({std::nullopt, 32, 2}, earlier).global_batch, std::nullopt);
  EXPECT_EQ(batch_of_resumed({64, std::nullopt, 1}, earlier).global_batch, 64);
}

TEST(ResumeRulesTest, another_way_of_summing_is_named_where_the_ranks_are_the_same) {
  EXPECT_EQ(origin_difference({2, "cpu", "mpi", "", {}}, {2, "cpu", "shared memory", "", {}}, Sums::rounded),
            "shared memory instead of mpi");
  EXPECT_EQ(origin_difference({2, "cpu", "mpi", "", {}}, {1, "cpu", "none", "", {}}, Sums::rounded),
            "1 rank instead of 2 ranks");
}

TEST(ResumeRulesTest, what_the_bits_depend_on_is_compared_and_named) {
  const Origin earlier{2, "cpu: some, 1 thread", "mpi", "cpu: AVX2", {{"HDF5", "1.10"}, {"Open MPI", "4.1"}}};
  EXPECT_EQ(origin_difference(earlier, earlier, Sums::rounded), "");
  const Origin other{
      1, "cpu: other, 2 threads", "shared memory", "cpu: AVX-512", {{"HDF5", "1.10"}, {"Open MPI", "5.0"}, {"x", "1"}}};
  EXPECT_EQ(origin_difference(earlier, other, Sums::rounded),
            "1 rank instead of 2 ranks, cpu: AVX-512 instead of cpu: AVX2, Open MPI 5.0 instead of Open MPI 4.1, x 1 "
            "instead of x (none)");
}

TEST(ResumeRulesTest, with_exact_sums_the_number_of_ranks_is_of_no_account) {
  const Origin earlier{2, "cpu: some, 1 thread", "mpi", "cpu: AVX2", {}};
  const Origin more{12, "cpu: other, 3 threads", "shared memory", "cpu: AVX2", {}};
  EXPECT_EQ(origin_difference(earlier, more, Sums::exact), "");
}

}  // namespace
}  // namespace lockstep
