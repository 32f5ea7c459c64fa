#include "recipe/recipes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "recipe/fields.hpp"

namespace lockstep::recipes_test {

Settings settings_of(const char* name) {
  Settings settings;
  set_recipe(settings, *find_recipe(name));
  return settings;
}

const Field& field_named(std::string_view name) { return *std::ranges::find(training_fields(), name, &Field::name); }

TEST(RecipesTest, every_recipe_states_what_options_take_and_what_is_read) {
  for (const PublishedRecipe& recipe : published_recipes()) {
    EXPECT_FALSE(recipe.source.empty()) << recipe.name;
    const Settings settings = settings_of(recipe.name.c_str());
    for (const StatedField& stated : recipe.fields) {
      ASSERT_TRUE(std::ranges::count(training_fields(), stated.name, &Field::name) == 1) << recipe.name << stated.name;
      const Field& field = field_named(stated.name);
      EXPECT_TRUE(field.part == Field::Part::recipe || field.name.starts_with("test-"));
      EXPECT_EQ(unused_option_message(field, settings), "") << recipe.name << " " << stated.name;
      if (field.form == Field::Form::list) continue;
      EXPECT_EQ(field.validation_error(std::string(stated.value)), "") << recipe.name << " " << stated.name;
    }
    for (const char* decided : {"model", "epochs", "global-batch", "optimizer", "momentum", "weight-decay",
                                "label-smoothing", "lr", "lr-batch", "schedule", "warmup"}) {
      EXPECT_EQ(std::ranges::count(recipe.fields, decided, &StatedField::name), 1) << recipe.name << " " << decided;
    }
    const Recipe& r = settings.recipe;
    EXPECT_GT(LrSchedule(r.learning_rate, r.batch.global_batch->value, schedule_steps(r, 100), 100).at(0), 0)
        << recipe.name;
  }
}

TEST(RecipesTest, names_are_told_in_order) {
  const std::string known = known_recipes();
  EXPECT_TRUE(known.starts_with("rn50-ffcv-16, rn50-ffcv-24, ")) << known;
  EXPECT_TRUE(known.ends_with("pai-cifar, pai-ddp, pai-lite, pai-imagenet")) << known;
  EXPECT_EQ(find_recipe("rn50"), nullptr);
}

TEST(RecipesTest, ffcvs_rate_is_a_triangle_with_its_peak_at_epoch_two) {
  const Recipe recipe = settings_of("rn50-ffcv-16").recipe;
  EXPECT_EQ(recipe.model, "resnet50");
  EXPECT_EQ(recipe.optimizer.decay_scope, DecayScope::weights_only);
  EXPECT_EQ(recipe.optimizer.weight_decay, 1e-4F);
  const LrSchedule schedule(recipe.learning_rate, 4096, schedule_steps(recipe, 312), 312);
  EXPECT_DOUBLE_EQ(schedule.at(0), 1.7e-4);
  EXPECT_NEAR(schedule.at(312), 1.7 * (1e-4 + 1) / 2, 1e-12);
  EXPECT_DOUBLE_EQ(schedule.at(2 * 312), 1.7);
  EXPECT_NEAR(schedule.at(9 * 312), 1.7 / 2, 1e-12);
  EXPECT_NEAR(schedule.at(16 * 312), 0, 1e-12);
  EXPECT_EQ(settings_of("rn18-ffcv-88").recipe.learning_rate.rate, 0.5);
  EXPECT_EQ(model_name(settings_of("rn18-ffcv-88").recipe), "resnet18-blur");
}

TEST(RecipesTest, ffcvs_images_grow_from_160_to_192_and_are_tested_in_256_pixels) {
  Manifest data;
  data.store = SampleStore::jpeg;
  data.shape = {224, 224, 3};
  const auto side = [&data](const char* recipe, std::int64_t epoch) {
    return training_rules(settings_of(recipe).recipe.images, data, epoch).size.height;
  };
  EXPECT_EQ(side("rn18-ffcv-16", 11), 160);
  EXPECT_EQ(side("rn18-ffcv-16", 12), 192);
  EXPECT_EQ(side("rn50-ffcv-40", 31), 160);
  EXPECT_EQ(side("rn50-ffcv-40", 32), 192);
  EXPECT_EQ(side("rn50-ffcv-88", 70), 160);
  EXPECT_EQ(side("rn50-ffcv-88", 71), 192);
  const ImageRules tests = test_rules(settings_of("rn50-ffcv-88").recipe.images, data);
  EXPECT_EQ(tests.size, (PictureSize{256, 256}));
  EXPECT_EQ(tests.shorter_side, 292);  // of 292.6
  EXPECT_EQ(training_rules(settings_of("rn50-ffcv-88").recipe.images, data, 0).augmentation,
            Augmentation::resized_crop_and_flip);
}

TEST(RecipesTest, mlperfs_is_lars_with_a_square_course) {
  const Recipe recipe = settings_of("rn50-mlperf").recipe;
  EXPECT_EQ(recipe.optimizer.kind, OptimizerKind::lars);
  EXPECT_EQ(recipe.optimizer.trust_coefficient, 0.001F);
  EXPECT_EQ(recipe.optimizer.weight_decay, 5e-5F);
  const LrSchedule schedule(recipe.learning_rate, 3200, schedule_steps(recipe, 400), 400);
  EXPECT_DOUBLE_EQ(schedule.at(2 * 400), 11);
  const double left = 1 - 10.0 / 35;
  EXPECT_NEAR(schedule.at(12 * 400), 1e-4 + (11 - 1e-4) * left * left, 1e-12);
}

TEST(RecipesTest, the_short_training_of_cifar10_is_the_long_one_with_other_sizes) {
  const Recipe recipe = settings_of("cifar10-90").recipe;
  EXPECT_EQ(recipe.first_convolution, FirstConvolution::whitened);
  EXPECT_EQ(ema_rule(recipe, 195).value().ramp_steps, 585);
  const LrSchedule schedule(recipe.learning_rate, 256, schedule_steps(recipe, 195), 195);
  EXPECT_DOUBLE_EQ(schedule.at(117), 0.5);
  EXPECT_NEAR(schedule.at(585), 0.03, 1e-12);
}

// airbench94.py and airbench95.py give rates and decays of a summed loss, before momentum multiplies them.
TEST(RecipesTest, airbenchs_rates_are_its_sources_for_a_mean_loss) {
  struct Row {
    const char* recipe;
    double rate;
  };
  for (const auto& [name, rate] : {Row{"cifar10-94", 11.5}, Row{"cifar10-95", 10}}) {
    const Recipe recipe = settings_of(name).recipe;
    const double of_mean = rate / (1 + 1 / (1 - 0.85));
    const std::int64_t steps = schedule_steps(recipe, 48);
    const LrSchedule schedule(recipe.learning_rate, 1024, steps, 48);
    const auto peak = static_cast<std::int64_t>(std::lround(0.23 * static_cast<double>(steps)));
    EXPECT_NEAR(schedule.at(0), 0.2 * of_mean, 0.01) << name;
    EXPECT_NEAR(schedule.at(peak), of_mean, 0.01) << name;
    EXPECT_NEAR(schedule.at(steps), 0.07 * of_mean, 0.001) << name;
    EXPECT_NEAR(static_cast<double>(recipe.optimizer.weight_decay), 0.0153 / rate, 1e-6) << name;
  }
}

TEST(RecipesTest, airbenchs_rates_with_muon_are_its_sources_for_a_mean_loss) {
  const Recipe recipe = settings_of("cifar10-94-muon").recipe;
  EXPECT_EQ(recipe.optimizer.kind, OptimizerKind::muon);
  EXPECT_EQ(recipe.optimizer.muon_momentum, 0.6F);
  EXPECT_EQ(recipe.optimizer.ns_steps, 3);
  EXPECT_EQ(recipe.optimizer.momentum, 0.85F);
  EXPECT_EQ(recipe.optimizer.momentum_kind, Momentum::nesterov);
  const LrSchedule schedule(recipe.learning_rate, 2000, schedule_steps(recipe, 25), 25);
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.24);
  EXPECT_NEAR(schedule.at(50), 0.24 * 0.75, 1e-12);
  EXPECT_NEAR(schedule.at(199), 0.24 / 200, 1e-12);
  double of_biases = 0;
  double of_last = 0;
  for (const RateScale& scale : recipe.optimizer.rate_scales) {
    if (scale.pattern == "*.norm?.bias") of_biases = 0.24 * static_cast<double>(scale.factor);
    if (scale.pattern == "fc.weight") of_last = 0.24 * static_cast<double>(scale.factor);
  }
  EXPECT_NEAR(of_biases, 0.053 * 2000, 0.1);
  EXPECT_NEAR(of_last, 0.67 * 2000 * std::pow(9.0 / 256, 2), 0.001);
  EXPECT_NEAR(of_last * static_cast<double>(recipe.optimizer.weight_decay), 2e-6 * 2000, 1e-6);
}

TEST(RecipesTest, airbenchs_lookahead_has_a_decay_that_grows_to_the_end) {
  const Recipe recipe = settings_of("cifar10-94").recipe;
  EXPECT_EQ(recipe.optimizer.rate_scales, (std::vector<RateScale>{{"*.norm?.weight", 0.0F}, {"*.norm?.bias", 64.0F}}));
  const EmaRule rule = ema_rule(recipe, 48).value();
  EXPECT_TRUE(rule.leads);
  EXPECT_EQ(rule.every, 5);
  EXPECT_EQ(rule.ramp_steps, 480);
  float record[step_metric_slots] = {};
  record[step_applied_steps] = 240;
  EXPECT_NEAR(ema_share(rule, record), 1 - 0.774 / 8, 1e-6);
  record[step_applied_steps] = 480;
  EXPECT_NEAR(ema_share(rule, record), 1 - 0.774, 1e-6);
}

TEST(RecipesTest, torchvisions_newer_one_keeps_a_mean_from_the_end_of_the_warm_up) {
  const Recipe recipe = settings_of("torchvision-v2").recipe;
  const EmaRule rule = ema_rule(recipe, 1251).value();
  EXPECT_EQ(rule.every, 32);
  EXPECT_EQ(rule.copies_until, 5 * 1251);
  EXPECT_NEAR(rule.share, 2e-5 * 1024 * 32 / 600, 1e-6);
  EXPECT_EQ(ema_rule(settings_of("torchvision").recipe, 5004), std::nullopt);
}

TEST(RecipesTest, torchvisions_newer_one_is_tested_in_larger_images) {
  const ImageOptions images = settings_of("torchvision-v2").recipe.images;
  EXPECT_EQ(images.side, 176);
  EXPECT_EQ(images.test_side, 224);
  EXPECT_EQ(images.shorter_side, 232);
}

TEST(RecipesTest, torchvisions_shows_crops_of_224_pixels) {
  const Recipe recipe = settings_of("torchvision").recipe;
  EXPECT_EQ(recipe.images.augmentation, Augmentation::resized_crop_and_flip);
  EXPECT_EQ(recipe.images.side, 224);
  EXPECT_EQ(recipe.images.shorter_side, 256);
}

// A program's own defaults are not part of a published recipe.
TEST(RecipesTest, nothing_is_left_of_what_was_there_but_the_seed_and_the_arithmetic) {
  Settings before;
  before.recipe.seed = 7;
  before.recipe.arithmetic.precision = DType::bf16;
  before.recipe.batch.batch_per_rank = 3;
  before.recipe.label_smoothing = 0.3F;
  before.recipe.optimizer.momentum_kind = Momentum::nesterov;
  before.recipe.optimizer.clip.norm = 1;
  before.run.output = "out";
  before.run.test_time_augmentation = TestTimeAugmentation::flip;
  set_recipe(before, *find_recipe("pai-lite"));
  Settings expected = settings_of("pai-lite");
  expected.recipe.seed = 7;
  expected.recipe.arithmetic.precision = DType::bf16;
  EXPECT_EQ(json_of(before, Field::Part::recipe), json_of(expected, Field::Part::recipe));
  EXPECT_EQ(before.run.output, "out");
  EXPECT_EQ(before.run.test_time_augmentation, TestTimeAugmentation::plain);
  EXPECT_EQ(settings_of("rn50-ffcv-88").run.test_time_augmentation, TestTimeAugmentation::flip);
  EXPECT_EQ(expected.recipe.optimizer.momentum, 0);
}

}  // namespace lockstep::recipes_test
