#include "recipe/recipe.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "recipe/run_options.hpp"
#include "support/messages.hpp"

namespace lockstep::recipe_test {

BatchOptions global(std::int64_t samples, int accumulate = 1) {
  return {ChosenNumber{samples}, std::nullopt, accumulate};
}

BatchOptions usual(std::int64_t samples, int accumulate = 1) {
  return {ChosenNumber{samples, ChosenBy::program}, std::nullopt, accumulate};
}

BatchOptions per_rank(std::int64_t samples, int accumulate) { return {std::nullopt, samples, accumulate}; }

BatchOptions virtual_ranks(BatchOptions options, int parts) {
  options.virtual_ranks = parts;
  return options;
}

struct Refusal {
  const char* name;
  std::function<void()> act;
  const char* subject;  // that the message names
};

void expect_refusals(const std::vector<Refusal>& rows) {
  for (const Refusal& row : rows) {
    SCOPED_TRACE(row.name);
    expect_error(Failure::usage, {row.subject}, row.act);
  }
}

TEST(LoaderShareTest, parts_go_to_ranks_in_order) {
  const LoaderShare share = loader_share(global(96, 2), 1, 3);
  EXPECT_EQ(share.global_batch, 96);
  EXPECT_EQ(share.total_micro_batches, 6);
  EXPECT_EQ(share.first_micro_batch, 2);
  EXPECT_EQ(share.micro_batches, 2);
  EXPECT_EQ(share.micro_batch_size(), 16);
}

TEST(LoaderShareTest, a_batch_per_rank_counts_once_for_each_part_of_each_rank) {
  EXPECT_EQ(loader_share(per_rank(32, 4), 0, 2).global_batch, 256);
}

// The batch is that of one update.
TEST(LoaderShareTest, a_step_has_as_many_batches_as_each_rank_makes_updates) {
  BatchOptions options = global(96);
  options.local_steps = 4;
  const LoaderShare share = loader_share(options, 1, 3);
  EXPECT_EQ(share.global_batch, 384);
  EXPECT_EQ(share.update_batch(), 96);
  EXPECT_EQ(share.total_micro_batches, 12);
  EXPECT_EQ(share.first_micro_batch, 4);
  EXPECT_EQ(share.micro_batches, 4);
  EXPECT_EQ(share.micro_batch_size(), 32);
}

TEST(LoaderShareTest, virtual_ranks_go_to_ranks_in_order_as_evenly_as_they_can) {
  for (int ranks = 1; ranks <= 12; ++ranks) {
    int next = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const LoaderShare share = loader_share(virtual_ranks(global(96), 12), rank, ranks);
      EXPECT_EQ(share.global_batch, 96);
      EXPECT_EQ(share.total_micro_batches, 12);
      EXPECT_EQ(share.micro_batch_size(), 8);
      EXPECT_EQ(share.first_micro_batch, next);
      EXPECT_GE(share.micro_batches, 12 / ranks);
      EXPECT_LE(share.micro_batches, (12 + ranks - 1) / ranks);
      next += share.micro_batches;
    }
    EXPECT_EQ(next, 12);
  }
}

TEST(LoaderShareTest, a_batch_that_cannot_be_shared_is_refused) {
  expect_refusals({
      {"global batch", [] { loader_share(global(100), 0, 3); }, "--global-batch"},
      {"smaller than the parts", [] { loader_share(global(5, 4), 0, 2); }, "--global-batch"},
      {"no sample", [] { loader_share(global(0), 0, 1); }, "--global-batch"},
      {"2^40 samples", [] { loader_share(per_rank(std::int64_t{1} << 40, 1), 0, 1); }, "--batch-per-rank"},
      {"accumulation", [] { loader_share(global(8, 0), 0, 1); }, "--accumulate"},
      {"more ranks than virtual ones", [] { loader_share(virtual_ranks(global(96), 12), 0, 13); }, "--virtual-ranks"},
      {"one virtual rank", [] { loader_share(virtual_ranks(global(96), 1), 0, 2); }, "--virtual-ranks"},
      {"global batch of virtual ranks", [] { loader_share(virtual_ranks(global(100), 12), 0, 1); }, "--global-batch"},
      {"accumulation of virtual ranks", [] { loader_share(virtual_ranks(global(96, 2), 12), 0, 1); },
       "--virtual-ranks"},
      {"batch of each rank, virtual ranks", [] { loader_share(virtual_ranks(per_rank(8, 1), 12), 0, 1); },
       "--batch-per-rank"},
      {"fewer samples than ranks", [] { fit_global_batch(usual(128), 3, 2); }, ""},
      {"fewer samples than parts", [] { fit_global_batch(usual(128, 2), 3, 5); }, "--accumulate"},
      {"fewer samples than virtual ranks", [] { fit_global_batch(virtual_ranks(usual(128), 12), 3, 5); },
       "--virtual-ranks"},
  });
}

TEST(SyncTest, what_local_updates_cannot_keep_is_refused) {
  const auto refuses = [](const std::function<void(Settings&)>& change) {
    return [change] {
      Settings settings;
      settings.recipe.model = "lenet";
      settings.recipe.batch.global_batch = ChosenNumber{96};
      settings.recipe.sync = Sync::local;
      settings.recipe.batch.local_steps = 4;
      change(settings);
      ValidSettings{settings};
    };
  };
  refuses([](Settings&) {})();
  expect_refusals({
      {"virtual ranks", refuses([](Settings& settings) { settings.recipe.batch.virtual_ranks = 4; }),
       "--virtual-ranks"},
      {"accumulation", refuses([](Settings& settings) { settings.recipe.batch.accumulate = 2; }), "--accumulate"},
      {"shared norms", refuses([](Settings& settings) { settings.recipe.sync_batch_norm_ranks = 0; }),
       "--sync-batch-norm"},
      {"a divided optimizer", refuses([](Settings& settings) { settings.run.sums.shard_optimizer = true; }),
       "--shard-optimizer"},
      {"fp16", refuses([](Settings& settings) { settings.recipe.arithmetic.precision = DType::f16; }), "fp16"},
      {"all-reduce", refuses([](Settings& settings) { settings.recipe.sync = Sync::all_reduce; }), "--local-steps"},
      {"shares of one micro-batch", refuses([](Settings& settings) {
         settings.recipe.local_shares = LocalShares::by_speed;
         settings.recipe.batch.local_steps = 1;
       }),
       "--local-shares"},
      {"repeatable shares by speed", refuses([](Settings& settings) {
         settings.recipe.local_shares = LocalShares::by_speed;
         settings.run.device.deterministic = true;
       }),
       "--deterministic"},
  });
}

TEST(LoaderShareTest, servers_have_no_micro_batches_and_trainers_share_all) {
  for (const int servers : {1, 3}) {
    for (int rank = 0; rank < 2 + servers; ++rank) {
      const LoaderShare share = loader_share(global(96, 2), rank, 2 + servers, servers);
      EXPECT_EQ(share.global_batch, 96);
      EXPECT_EQ(share.total_micro_batches, 4);
      EXPECT_EQ(share.micro_batches, rank < 2 ? 2 : 0);
      EXPECT_EQ(share.first_micro_batch, rank < 2 ? rank * 2 : 4);
    }
  }
}

TEST(SyncTest, what_parameter_servers_cannot_keep_is_refused) {
  const auto refuses = [](const std::function<void(Settings&)>& change) {
    return [change] {
      Settings settings;
      settings.recipe.model = "lenet";
      settings.recipe.batch.global_batch = ChosenNumber{96};
      settings.recipe.sync = Sync::servers;
      change(settings);
      ValidSettings{settings};
    };
  };
  refuses([](Settings& settings) { settings.recipe.batch.virtual_ranks = 4; })();
  expect_refusals({
      {"shared norms", refuses([](Settings& settings) { settings.recipe.sync_batch_norm_ranks = 0; }),
       "--sync-batch-norm"},
      {"a divided optimizer", refuses([](Settings& settings) { settings.run.sums.shard_optimizer = true; }),
       "--shard-optimizer"},
      {"local updates", refuses([](Settings& settings) { settings.recipe.batch.local_steps = 4; }), "--local-steps"},
      {"trainers without micro-batches", refuses([](Settings& settings) {
         settings.run.output = "o";
         settings.run.sums.trainers = 5;
         settings.recipe.batch.virtual_ranks = 4;
       }),
       "--virtual-ranks 4"},
      {"batches of ranks", refuses([](Settings& settings) {
         settings.run.output = "o";
         settings.run.sums.trainers = 5;
         settings.recipe.batch = {{}, 32};
       }),
       "--global-batch"},
  });
}

TEST(SyncTest, trainers_that_come_and_go_are_virtual_ranks_unless_their_number_is_given) {
  Settings settings;
  settings.recipe.model = "lenet";
  settings.recipe.batch.global_batch = ChosenNumber{96};
  settings.recipe.sync = Sync::servers;
  EXPECT_EQ(ValidSettings(settings).recipe().batch.virtual_ranks, std::nullopt);
  settings.run.output = "o";
  settings.run.sums.trainers = 3;
  EXPECT_EQ(ValidSettings(settings).recipe().batch.virtual_ranks, 3);
  settings.recipe.batch.virtual_ranks = 12;
  EXPECT_EQ(ValidSettings(settings).recipe().batch.virtual_ranks, 12);
  settings.recipe.batch.virtual_ranks.reset();
  settings.recipe.sync = Sync::async_servers;
  EXPECT_EQ(ValidSettings(settings).recipe().batch.virtual_ranks, std::nullopt);
}

TEST(SyncTest, what_asynchronous_updates_cannot_keep_is_refused) {
  const auto refuses = [](const std::function<void(Settings&)>& change) {
    return [change] {
      Settings settings;
      settings.recipe.model = "lenet";
      settings.recipe.batch.global_batch = ChosenNumber{96};
      settings.recipe.batch.local_steps = 16;
      settings.recipe.sync = Sync::async_servers;
      change(settings);
      ValidSettings{settings};
    };
  };
  refuses([](Settings&) {})();
  refuses([](Settings& settings) { settings.recipe.optimizer.clip.norm = 1.0F; })();
  expect_refusals({
      {"virtual ranks", refuses([](Settings& settings) { settings.recipe.batch.virtual_ranks = 4; }),
       "--virtual-ranks"},
      {"repeatable", refuses([](Settings& settings) { settings.run.device.deterministic = true; }), "--deterministic"},
      {"accumulation", refuses([](Settings& settings) { settings.recipe.batch.accumulate = 2; }), "--accumulate"},
      {"norms in parts", refuses([](Settings& settings) {
         settings.recipe.optimizer.clip.norm = 1.0F;
         settings.run.sums.servers = 2;
       }),
       "--clip-norm"},
      {"shared norms", refuses([](Settings& settings) { settings.recipe.sync_batch_norm_ranks = 0; }),
       "--sync-batch-norm"},
      {"a divided optimizer", refuses([](Settings& settings) { settings.run.sums.shard_optimizer = true; }),
       "--shard-optimizer"},
      {"compression", refuses([](Settings& settings) { settings.recipe.powersgd_rank = 2; }), "--compress"},
      {"fp16", refuses([](Settings& settings) { settings.recipe.arithmetic.precision = DType::f16; }), "fp16"},
      {"trainers that cannot find it", refuses([](Settings& settings) { settings.run.sums.trainers = 3; }), "--output"},
      {"trainers of several servers", refuses([](Settings& settings) {
         settings.run.sums.trainers = 3;
         settings.run.sums.servers = 2;
       }),
       "--servers"},
  });
}

TEST(MuonTest, what_divides_matrices_is_refused) {
  const auto refuses = [](const std::function<void(Settings&)>& change) {
    return [change] {
      Settings settings;
      settings.recipe.model = "lenet";
      settings.recipe.batch.global_batch = ChosenNumber{96};
      settings.recipe.optimizer.kind = OptimizerKind::muon;
      change(settings);
      ValidSettings{settings};
    };
  };
  refuses([](Settings&) {})();
  refuses([](Settings& settings) { settings.recipe.sync = Sync::local; })();
  refuses([](Settings& settings) { settings.recipe.sync = Sync::async_servers; })();
  refuses([](Settings& settings) { settings.recipe.powersgd_rank = 2; })();
  expect_refusals({
      {"a divided optimizer", refuses([](Settings& settings) { settings.run.sums.shard_optimizer = true; }),
       "--shard-optimizer"},
      {"several servers", refuses([](Settings& settings) {
         settings.recipe.sync = Sync::servers;
         settings.run.sums.servers = 2;
       }),
       "--servers 2"},
  });
}

TEST(CompressionTest, what_it_cannot_keep_is_refused) {
  const auto refuses = [](const std::function<void(Settings&)>& change) {
    return [change] {
      Settings settings;
      settings.recipe.model = "lenet";
      settings.recipe.batch.global_batch = ChosenNumber{96};
      settings.recipe.powersgd_rank = 2;
      change(settings);
      ValidSettings{settings};
    };
  };
  refuses([](Settings&) {})();
  refuses([](Settings& settings) { settings.recipe.sync = Sync::local; })();
  expect_refusals({
      {"virtual ranks", refuses([](Settings& settings) { settings.recipe.batch.virtual_ranks = 4; }),
       "--virtual-ranks"},
      {"servers", refuses([](Settings& settings) { settings.recipe.sync = Sync::servers; }), "--sync ps"},
      {"a divided optimizer", refuses([](Settings& settings) { settings.run.sums.shard_optimizer = true; }),
       "--shard-optimizer"},
      {"fp16", refuses([](Settings& settings) { settings.recipe.arithmetic.precision = DType::f16; }), "fp16"},
  });
}

// Three ranks were refused the default, whose neighbours they then had to type.
TEST(LoaderShareTest, a_batch_that_the_program_chose_fits_itself_to_ranks_and_data) {
  const auto fits = [](const BatchOptions& options, int ranks, std::int64_t samples) {
    return fit_global_batch(options, ranks, samples).global_batch->value;
  };
  EXPECT_EQ(fits(usual(128), 2, 50000), 128);
  EXPECT_EQ(fits(usual(128), 3, 50000), 126);
  EXPECT_EQ(fits(usual(128, 3), 3, 50000), 126);
  EXPECT_EQ(fits(usual(128), 200, 50000), 200);
  EXPECT_EQ(fits(usual(256), 1, 80), 80);
  EXPECT_EQ(fits(usual(256), 3, 80), 78);
  EXPECT_EQ(fits(global(128), 3, 80), 128) << "a user's is kept, and refused";
  BatchOptions local = usual(128);
  local.local_steps = 8;
  EXPECT_EQ(fits(local, 3, 50000), 126);
  EXPECT_EQ(fits(local, 3, 80 * 8), 78);
  for (const int ranks : {1, 2, 5, 12}) EXPECT_EQ(fits(virtual_ranks(usual(128), 12), ranks, 50000), 120) << ranks;
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

int norm_group(const BatchOptions& batch, int sync_batch_norm_ranks, int ranks) {
  Recipe recipe;
  recipe.batch = batch;
  recipe.sync_batch_norm_ranks = sync_batch_norm_ranks;
  return norm_group_size(recipe, loader_share(batch, 0, ranks), ranks);
}

TEST(NormGroupSizeTest, ranks_are_taken_as_the_recipe_says) {
  EXPECT_EQ(norm_group(global(96), 1, 4), 1);
  EXPECT_EQ(norm_group(global(96), 2, 4), 2);
  EXPECT_EQ(norm_group(global(96), 0, 4), 4) << "all";
  EXPECT_EQ(norm_group(global(96, 3), 0, 2), 2) << "parts of a rank meet those of others one after another";
  EXPECT_EQ(norm_group(virtual_ranks(global(96), 4), 2, 4), 2) << "each virtual rank has a rank of its own";
  expect_refusals({
      {"unequal groups", [] { norm_group(global(96), 3, 4); }, "--sync-batch-norm"},
      {"several virtual ranks on a rank", [] { norm_group(virtual_ranks(global(96), 4), 2, 1); }, "--sync-batch-norm"},
  });
}

}  // namespace lockstep::recipe_test
