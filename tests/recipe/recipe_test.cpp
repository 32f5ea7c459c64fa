#include "recipe/recipe.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "support/words_of.hpp"

namespace lockstep {
namespace {

BatchPlan global(std::int64_t samples, int accumulate = 1) { return {ChosenNumber{samples}, std::nullopt, accumulate}; }

BatchPlan usual(std::int64_t samples, int accumulate = 1) {
  return {ChosenNumber{samples, ChosenBy::program}, std::nullopt, accumulate};
}

TEST(LoaderShareTest, parts_go_to_ranks_in_order) {
  const LoaderShare share = loader_share(global(96, 2), 1, 3);
  EXPECT_EQ(share.global_batch, 96);
  EXPECT_EQ(share.total_parts, 6);
  EXPECT_EQ(share.first_part, 2);
  EXPECT_EQ(share.parts, 2);
  EXPECT_EQ(share.part_size(), 16);
}

TEST(LoaderShareTest, a_batch_per_rank_counts_once_for_each_part_of_each_rank) {
  EXPECT_EQ(loader_share({std::nullopt, 32, 4}, 0, 2).global_batch, 256);
}

TEST(LoaderShareTest, a_global_batch_that_does_not_divide_names_the_nearest_that_does) {
  EXPECT_EQ(words_of(Failure::usage, [] { loader_share(global(100), 0, 3); }),
            "--global-batch 100 does not divide into 3 equal parts (ranks: 3, parts each: 1). Nearest that does: 99 or "
            "102.");
  EXPECT_EQ(words_of(Failure::usage, [] { loader_share(global(5, 4), 0, 2); }),
            "--global-batch 5 does not divide into 8 equal parts (ranks: 2, parts each: 4). Nearest that does: 8.");
}

TEST(LoaderShareTest, an_impossible_batch_is_refused) {
  EXPECT_EQ(words_of(Failure::usage, [] { loader_share(global(0), 0, 1); }),
            "--global-batch is 0. A batch has at least 1 sample and at most 2^31.");
  EXPECT_EQ(words_of(Failure::usage,
                     [] {
                       loader_share({std::nullopt, std::int64_t{1} << 40, 1}, 0, 1);
                     }),
            "--batch-per-rank is 1099511627776. A batch has at least 1 sample and at most 2^31.");
  EXPECT_EQ(words_of(Failure::usage, [] { loader_share(global(8, 0), 0, 1); }),
            "--accumulate is 0. It must be at least 1.");
}

// Three ranks were refused the default, whose neighbours they then had to type.
TEST(LoaderShareTest, a_batch_that_the_program_chose_fits_itself_to_ranks_and_data) {
  const auto fits = [](const BatchPlan& plan, int ranks, std::int64_t samples) {
    return fitted(plan, ranks, samples).global_batch->value;
  };
  EXPECT_EQ(fits(usual(128), 2, 50000), 128);
  EXPECT_EQ(fits(usual(128), 3, 50000), 126);
  EXPECT_EQ(fits(usual(128, 3), 3, 50000), 126);
  EXPECT_EQ(fits(usual(128), 200, 50000), 200);
  EXPECT_EQ(fits(usual(256), 1, 80), 80);
  EXPECT_EQ(fits(usual(256), 3, 80), 78);
  EXPECT_EQ(fits(global(128), 3, 80), 128) << "a user's is kept, and refused";
  EXPECT_EQ(words_of(Failure::usage, [&] { fits(usual(128), 3, 2); }),
            "3 parts cannot share a training set of 2 samples (each takes at least one in a step). Start fewer ranks.");
  EXPECT_EQ(words_of(Failure::usage, [&] { fits(usual(128, 2), 3, 5); }),
            "6 parts cannot share a training set of 5 samples (each takes at least one in a step). Start fewer ranks, "
            "or lower --accumulate.");
}

TEST(LoaderShareTest, with_virtual_ranks_the_batch_is_the_same_on_any_number_of_ranks) {
  BatchPlan plan = usual(128);
  plan.virtual_ranks = 12;
  for (const int ranks : {1, 2, 5, 12}) EXPECT_EQ(fitted(plan, ranks, 50000).global_batch->value, 120);
}

BatchPlan virtual_ranks(std::int64_t samples, int parts) {
  BatchPlan plan = global(samples);
  plan.virtual_ranks = parts;
  return plan;
}

TEST(LoaderShareTest, virtual_ranks_go_to_ranks_in_order_as_evenly_as_they_can) {
  for (int ranks = 1; ranks <= 12; ++ranks) {
    int next = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const LoaderShare share = loader_share(virtual_ranks(96, 12), rank, ranks);
      EXPECT_EQ(share.global_batch, 96);
      EXPECT_EQ(share.total_parts, 12);
      EXPECT_EQ(share.part_size(), 8);
      EXPECT_EQ(share.first_part, next);
      EXPECT_GE(share.parts, 12 / ranks);
      EXPECT_LE(share.parts, (12 + ranks - 1) / ranks);
      next += share.parts;
    }
    EXPECT_EQ(next, 12);
  }
}

TEST(LoaderShareTest, virtual_ranks_that_cannot_be_are_refused) {
  EXPECT_EQ(
      words_of(Failure::usage, [] { loader_share(virtual_ranks(96, 12), 0, 13); }),
      "13 ranks cannot share 12 virtual ranks (a virtual rank is computed by one rank). Start at most 12, or raise "
      "--virtual-ranks.");
  EXPECT_EQ(words_of(Failure::usage, [] { loader_share(virtual_ranks(96, 1), 0, 2); }),
            "2 ranks cannot share 1 virtual rank (a virtual rank is computed by one rank). Start at most 1, or raise "
            "--virtual-ranks.");
  EXPECT_EQ(words_of(Failure::usage, [] { loader_share(virtual_ranks(100, 12), 0, 1); }),
            "--global-batch 100 does not divide into 12 equal parts (virtual ranks). Nearest that does: 96 or 108.");
  BatchPlan plan = virtual_ranks(96, 12);
  plan.accumulate = 2;
  EXPECT_EQ(words_of(Failure::usage, [&] { loader_share(plan, 0, 1); }),
            "--virtual-ranks says how the global batch is cut, and --accumulate 2 too. Leave out --accumulate: a rank "
            "carries its virtual ranks one after another.");
  plan = {std::nullopt, 8, 1, 12};
  EXPECT_EQ(words_of(Failure::usage, [&] { loader_share(plan, 0, 1); }),
            "--batch-per-rank depends on the number of ranks, which --virtual-ranks makes of no account. Use "
            "--global-batch.");
}

TEST(LearningRateTest, grows_in_proportion_to_the_global_batch) {
  LearningRate rate;
  rate.rate = 0.1;
  rate.base_batch = 128;
  EXPECT_DOUBLE_EQ(scaled_rate(rate, 512), 0.4);
  rate.base_batch = 0;
  EXPECT_DOUBLE_EQ(scaled_rate(rate, 512), 0.1);
}

TEST(LearningRateTest, warm_up_and_milestones_are_stated_in_epochs) {
  LearningRate rate;
  rate.rate = 1;
  rate.base_batch = 0;
  rate.schedule = Schedule::step;
  rate.warmup_epochs = 0.5;
  rate.milestones = {2, 3};
  const LrSchedule schedule = make_schedule(rate, 64, 40, 10);
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.2);
  EXPECT_DOUBLE_EQ(schedule.at(4), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(19), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(20), 0.1);
  EXPECT_NEAR(schedule.at(30), 0.01, 1e-12);
}

TEST(LearningRateTest, an_unstated_warm_up_of_one_cycle_is_a_fifth_of_the_training) {
  const LrSchedule schedule = make_schedule(LearningRate{}, 128, 100, 100);
  EXPECT_NEAR(schedule.at(19), 0.1, 1e-12);
  EXPECT_LT(schedule.at(0), schedule.at(10));
}

// A cosine of five epochs spent one of them on a warm-up that nobody had asked for.
TEST(LearningRateTest, other_schedules_have_no_warm_up_unless_it_is_stated) {
  for (const Schedule kind : {Schedule::constant, Schedule::step, Schedule::cosine, Schedule::poly}) {
    LearningRate rate;
    rate.schedule = kind;
    EXPECT_DOUBLE_EQ(make_schedule(rate, 128, 100, 20).at(0), 0.1);
    rate.warmup_epochs = 1;
    EXPECT_DOUBLE_EQ(make_schedule(rate, 128, 100, 20).at(0), 0.1 / 20);
  }
}

TEST(LearningRateTest, the_schedule_ends_with_the_last_step_unless_epochs_are_stated) {
  Recipe recipe;
  recipe.epochs = {10, ChosenBy::program};
  EXPECT_EQ(schedule_steps(recipe, 7), 70);
  recipe.max_steps = 25;
  EXPECT_EQ(schedule_steps(recipe, 7), 25);
  recipe.epochs.by = ChosenBy::user;
  EXPECT_EQ(schedule_steps(recipe, 7), 70);
}

Manifest data_of(SampleStore store, SampleKind kind = SampleKind::picture) {
  Manifest data;
  data.store = store;
  data.kind = kind;
  data.shape = {32, 40, 3};
  return data;
}

TEST(ImageRulesTest, digits_are_not_mirrored) {
  using enum SampleStore;
  EXPECT_EQ(test_rules({}, data_of(images, SampleKind::digit)).augmentation, Augmentation::crop);
  EXPECT_EQ(test_rules({}, data_of(images)).augmentation, Augmentation::crop_and_flip);
  EXPECT_EQ(test_rules({}, data_of(pictures)).augmentation, Augmentation::crop_and_flip);
  EXPECT_EQ(test_rules({}, data_of(jpeg, SampleKind::digit)).augmentation, Augmentation::resized_crop);
  EXPECT_EQ(test_rules({}, data_of(jpeg)).augmentation, Augmentation::resized_crop_and_flip);
}

TEST(ImageRulesTest, pictures_of_the_images_size_are_not_resized) {
  using enum SampleStore;
  for (const SampleStore store : {images, pictures}) {
    const ImageRules rules = test_rules({}, data_of(store));
    EXPECT_EQ(rules.size, (PictureSize{32, 40}));
    EXPECT_EQ(rules.shorter_side, std::nullopt);
    EXPECT_FALSE(rules.resamples());
  }
  EXPECT_EQ(test_rules({}, data_of(jpeg)).shorter_side, 36);
}

TEST(ImageRulesTest, images_of_another_size_are_made_of_resized_pictures) {
  using enum SampleStore;
  ImagePlan plan;
  plan.side = 224;
  EXPECT_EQ(test_rules(plan, data_of(jpeg)).shorter_side, 256);
  EXPECT_EQ(test_rules(plan, data_of(pictures)).shorter_side, 256);
  EXPECT_EQ(test_rules(plan, data_of(images)).shorter_side, 224);
  EXPECT_EQ(test_rules(plan, data_of(images)).size, (PictureSize{224, 224}));
  plan.shorter_side = 288;
  EXPECT_EQ(test_rules(plan, data_of(images)).shorter_side, 288);
}

TEST(ImageRulesTest, colours_and_squares_are_those_of_the_plan_and_else_none) {
  EXPECT_EQ(training_rules({}, data_of(SampleStore::images), 0).jitter, std::nullopt);
  EXPECT_EQ(training_rules({}, data_of(SampleStore::images), 0).cutout, std::nullopt);
  ImagePlan plan;
  plan.jitter = {0.1F, 0.2F, 0.3F};
  plan.cutout = 8;
  EXPECT_EQ(training_rules(plan, data_of(SampleStore::images), 0).jitter, (ColourJitter{0.1F, 0.2F, 0.3F}));
  EXPECT_EQ(training_rules(plan, data_of(SampleStore::images), 0).cutout, 8);
}

TEST(BlockShuffleTest, is_made_where_the_plan_asks_for_blocks) {
  Manifest data;
  data.shards = {ShardEntry{}};
  data.shards[0].samples = 1000;
  data.shards[0].bytes = 1000 << 20;
  EXPECT_FALSE(block_shuffle({}, data, 16));
  const auto blocks = block_shuffle({Shuffle::blocks, 64}, data, 16);
  ASSERT_TRUE(blocks);
  EXPECT_EQ(blocks->block, 4);
  EXPECT_EQ(blocks->lanes, 16);
  EXPECT_EQ(blocks->window, 4);
}

TEST(ImageRulesTest, what_is_stated_counts) {
  ImagePlan plan;
  plan.augmentation = Augmentation::none;
  plan.least_area = 0.25F;
  plan.decoding = Decoding::exact;
  const ImageRules rules = test_rules(plan, data_of(SampleStore::jpeg));
  EXPECT_EQ(rules.augmentation, Augmentation::none);
  EXPECT_EQ(rules.least_area, 0.25F);
  EXPECT_EQ(rules.decoding, Decoding::exact);
}

ImagePlan growing_plan() {
  ImagePlan plan;
  plan.side = 192;
  plan.ramp = SizeRamp{160, 1, 3};
  return plan;
}

TEST(ImageRulesTest, images_of_an_epoch_are_as_large_as_the_ramp_says_and_those_of_tests_as_at_its_end) {
  const ImagePlan plan = growing_plan();
  const Manifest data = data_of(SampleStore::jpeg);
  EXPECT_EQ(training_rules(plan, data, 1).size, (PictureSize{160, 160}));
  EXPECT_EQ(training_rules(plan, data, 1).shorter_side, 160 * 8 / 7);
  EXPECT_EQ(training_rules(plan, data, 3).size, (PictureSize{192, 192}));
  EXPECT_EQ(test_rules(plan, data).size, (PictureSize{192, 192}));
  EXPECT_EQ(training_sizes(plan, data, 90), (std::vector<PictureSize>{{160, 160}, {192, 192}}));
  EXPECT_EQ(training_sizes(plan, data, 2), (std::vector<PictureSize>{{160, 160}}));
  EXPECT_EQ(training_sizes({}, data, 90), (std::vector<PictureSize>{{32, 40}}));
}

TEST(ImageRulesTest, tests_may_have_images_of_their_own_size) {
  ImagePlan plan = growing_plan();
  plan.test_side = 256;
  const Manifest data = data_of(SampleStore::jpeg);
  EXPECT_EQ(test_rules(plan, data).size, (PictureSize{256, 256}));
  EXPECT_EQ(test_rules(plan, data).shorter_side, 292);
  EXPECT_EQ(training_rules(plan, data, 5).size, (PictureSize{192, 192}));
  EXPECT_EQ(training_sizes(plan, data, 90).back(), (PictureSize{192, 192}));
  ImagePlan of_tests_alone;
  of_tests_alone.test_side = 48;
  EXPECT_EQ(test_rules(of_tests_alone, data).size, (PictureSize{48, 48}));
  EXPECT_EQ(training_sizes(of_tests_alone, data, 1), (std::vector<PictureSize>{{32, 40}}));
}

// The same part of a picture is seen, whatever the size of the image.
TEST(ImageRulesTest, a_stated_shorter_side_is_that_of_tests_and_training_has_it_in_proportion) {
  ImagePlan plan = growing_plan();
  plan.test_side = 256;
  plan.shorter_side = 320;
  const Manifest data = data_of(SampleStore::jpeg);
  EXPECT_EQ(test_rules(plan, data).shorter_side, 320);
  EXPECT_EQ(training_rules(plan, data, 0).shorter_side, 200);
  EXPECT_EQ(training_rules(plan, data, 5).shorter_side, 240);
}

TEST(ImageRulesTest, a_ramp_leads_upwards_to_a_size_that_is_stated) {
  ImagePlan plan = growing_plan();
  const Manifest data = data_of(SampleStore::jpeg);
  plan.side = 128;
  const std::string falls =
      "--image-size-ramp 160:1:3 begins with larger images than it ends with (--image-size 128). Begin with smaller "
      "ones, or without a ramp: --image-size-ramp none.";
  EXPECT_EQ(words_of(Failure::usage, [&] { training_rules(plan, data, 0); }), falls);
  EXPECT_EQ(words_of(Failure::usage, [&] { test_rules(plan, data); }), falls);
  plan.side.reset();
  EXPECT_EQ(words_of(Failure::usage, [&] { training_rules(plan, data, 0); }),
            "--image-size-ramp 160:1:3 does not say how large images get at its end. State that too: --image-size.");
}

TEST(NormGroupSizeTest, ranks_are_taken_as_the_recipe_says) {
  Recipe recipe;
  recipe.batch = global(96);
  const LoaderShare share = loader_share(recipe.batch, 0, 4);
  EXPECT_EQ(norm_group_size(recipe, share, 4), 1);
  recipe.norm_ranks = 2;
  EXPECT_EQ(norm_group_size(recipe, share, 4), 2);
  recipe.norm_ranks = 0;
  EXPECT_EQ(norm_group_size(recipe, share, 4), 4);
  recipe.norm_ranks = 3;
  EXPECT_EQ(words_of(Failure::usage, [&] { norm_group_size(recipe, share, 4); }),
            "--sync-batch-norm 3 does not divide 4 ranks into equal groups. Take a number that does, or 0: all ranks.");
}

TEST(NormGroupSizeTest, parts_of_a_rank_meet_those_of_others_one_after_another) {
  Recipe recipe;
  recipe.batch = global(96, 3);
  recipe.norm_ranks = 0;
  EXPECT_EQ(norm_group_size(recipe, loader_share(recipe.batch, 1, 2), 2), 2);
}

TEST(NormGroupSizeTest, each_virtual_rank_has_a_rank_of_its_own) {
  Recipe recipe;
  recipe.batch = virtual_ranks(96, 4);
  recipe.norm_ranks = 2;
  EXPECT_EQ(norm_group_size(recipe, loader_share(recipe.batch, 0, 4), 4), 2);
  EXPECT_EQ(
      words_of(Failure::usage, [&] { norm_group_size(recipe, loader_share(recipe.batch, 0, 1), 1); }),
      "1 rank cannot carry 4 virtual ranks with --sync-batch-norm (those whose norms take their statistics together "
      "go forward at the same time, each on a rank of its own). Start 4 ranks, or leave out --sync-batch-norm.");
}

}  // namespace
}  // namespace lockstep
