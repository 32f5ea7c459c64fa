// What a recipe makes of data and batch: learning rates, images, order.
#include "recipe/recipe.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "recipe/refusals.hpp"
#include "recipe/run_options.hpp"

namespace lockstep::recipe_test {

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
  const LrSchedule schedule(rate, 64, 40, 10);
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.2);
  EXPECT_DOUBLE_EQ(schedule.at(4), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(19), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(20), 0.1);
  EXPECT_NEAR(schedule.at(30), 0.01, 1e-12);
}

TEST(LearningRateTest, an_unstated_warm_up_of_one_cycle_is_a_fifth_of_the_training) {
  const LrSchedule schedule(LearningRate{}, 128, 100, 100);
  EXPECT_NEAR(schedule.at(19), 0.1, 1e-12);
  EXPECT_LT(schedule.at(0), schedule.at(10));
}

// A cosine of five epochs spent one of them on a warm-up that nobody had asked for.
TEST(LearningRateTest, other_schedules_have_no_warm_up_unless_it_is_stated) {
  for (const Schedule kind : {Schedule::constant, Schedule::step, Schedule::cosine, Schedule::poly}) {
    LearningRate rate;
    rate.schedule = kind;
    EXPECT_DOUBLE_EQ(LrSchedule(rate, 128, 100, 20).at(0), 0.1);
    rate.warmup_epochs = 1;
    EXPECT_DOUBLE_EQ(LrSchedule(rate, 128, 100, 20).at(0), 0.1 / 20);
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

ImageOptions sized(std::optional<std::int64_t> side, std::optional<std::int64_t> test_side = {},
                   std::optional<std::int64_t> shorter_side = {}) {
  ImageOptions options;
  options.side = side;
  options.test_side = test_side;
  options.shorter_side = shorter_side;
  return options;
}

ImageOptions growing(ImageOptions options) {
  options.ramp = SizeRamp{160, 1, 3};
  return options;
}

TEST(ImageRulesTest, images_have_the_stated_size_and_pictures_are_resized_where_they_need_it) {
  using enum SampleStore;
  const std::optional<std::int64_t> tests;
  struct Row {
    const char* name;
    ImageOptions options;
    SampleStore store;
    std::optional<std::int64_t> epoch;  // none: tests
    PictureSize size;
    std::optional<std::int64_t> shorter_side;  // none: not resized
  };
  const std::vector<Row> rows = {
      {"images as stored", {}, images, tests, {32, 40}, {}},
      {"pictures as stored", {}, pictures, tests, {32, 40}, {}},
      {"JPEG files", {}, jpeg, tests, {32, 40}, 36},
      {"JPEG files to 224", sized(224), jpeg, tests, {224, 224}, 256},
      {"pictures to 224", sized(224), pictures, tests, {224, 224}, 256},
      {"images have no margin", sized(224), images, tests, {224, 224}, 224},
      {"stated shorter side", sized(224, {}, 288), images, tests, {224, 224}, 288},
      {"size of tests alone", sized({}, 48), jpeg, tests, {48, 48}, 54},
      {"beginning of a ramp", growing(sized(192)), jpeg, 1, {160, 160}, 182},
      {"end of a ramp", growing(sized(192)), jpeg, 3, {192, 192}, 219},
      {"tests have the size at the ramp's end", growing(sized(192)), jpeg, tests, {192, 192}, 219},
      {"tests of another size", growing(sized(192, 256)), jpeg, tests, {256, 256}, 292},
      {"training keeps its size then", growing(sized(192, 256)), jpeg, 5, {192, 192}, 219},
      // The same part of a picture is seen, whatever the size of the image.
      {"stated shorter side is that of tests", growing(sized(192, 256, 320)), jpeg, tests, {256, 256}, 320},
      {"in proportion at the beginning", growing(sized(192, 256, 320)), jpeg, 0, {160, 160}, 200},
      {"in proportion at the end", growing(sized(192, 256, 320)), jpeg, 5, {192, 192}, 240},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const Manifest data = data_of(row.store);
    const ImageRules rules = row.epoch ? training_rules(row.options, data, *row.epoch) : test_rules(row.options, data);
    EXPECT_EQ(rules.size, row.size);
    EXPECT_EQ(rules.shorter_side, row.shorter_side);
    EXPECT_EQ(rules.resamples(), row.shorter_side.has_value());
  }
}

TEST(ImageRulesTest, each_size_of_training_is_listed_once) {
  const Manifest data = data_of(SampleStore::jpeg);
  using Sizes = std::vector<PictureSize>;
  EXPECT_EQ(training_sizes({}, data, 90), (Sizes{{32, 40}}));
  EXPECT_EQ(training_sizes(sized({}, 48), data, 1), (Sizes{{32, 40}})) << "not that of tests";
  EXPECT_EQ(training_sizes(growing(sized(192)), data, 90), (Sizes{{160, 160}, {192, 192}}));
  EXPECT_EQ(training_sizes(growing(sized(192)), data, 2), (Sizes{{160, 160}}));
  EXPECT_EQ(training_sizes(growing(sized(192, 256)), data, 90), (Sizes{{160, 160}, {192, 192}})) << "not that of tests";
}

TEST(ImageRulesTest, a_ramp_leads_upwards_to_a_size_that_is_stated) {
  const Manifest data = data_of(SampleStore::jpeg);
  const char* falls = "--image-size-ramp 160:1:3";
  expect_refusals({
      {"falls in training", [&] { training_rules(growing(sized(128)), data, 0); }, falls},
      {"falls in tests", [&] { test_rules(growing(sized(128)), data); }, falls},
      {"no end", [&] { training_rules(growing(sized({})), data, 0); }, "--image-size-ramp"},
  });
}

// Trainings showed black borders in tests, and predict refused their models.
TEST(ImageRulesTest, pictures_are_not_resized_to_less_than_the_image) {
  const Manifest data = data_of(SampleStore::jpeg);
  const ImageOptions small = sized(192, 256, 255);
  expect_refusals({
      {"in tests", [&] { test_rules(small, data); }, "--resize 255"},
      {"in training", [&] { training_rules(small, data, 0); }, "--resize 255"},
      {"of the data's size", [&] { test_rules(sized({}, {}, 31), data); }, "32 x 40"},
  });
  EXPECT_EQ(test_rules(sized({}, {}, 32), data).shorter_side, 32);
  EXPECT_EQ(training_rules(sized(192, 256, 256), data, 0).shorter_side, 192);
}

TEST(ImageRulesTest, what_is_stated_counts_and_else_colours_stay_and_no_square_is_erased) {
  const Manifest data = data_of(SampleStore::jpeg);
  ImageOptions options;
  options.augmentation = Augmentation::none;
  options.transforms.min_area = 0.25F;
  options.decoding = Decoding::exact;
  options.transforms.jitter = {0.1F, 0.2F, 0.3F};
  options.transforms.cutout = 8;
  for (const ImageRules& rules : {training_rules(options, data, 0), test_rules(options, data)}) {
    EXPECT_EQ(rules.augmentation, Augmentation::none);
    EXPECT_EQ(rules.transforms.min_area, 0.25F);
    EXPECT_EQ(rules.decoding, Decoding::exact);
    EXPECT_EQ(rules.transforms.jitter, (ColorJitter{0.1F, 0.2F, 0.3F}));
    EXPECT_EQ(rules.transforms.cutout, 8);
  }
  EXPECT_EQ(training_rules({}, data, 0).transforms.jitter, std::nullopt);
  EXPECT_EQ(training_rules({}, data, 0).transforms.cutout, std::nullopt);
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

}  // namespace lockstep::recipe_test
