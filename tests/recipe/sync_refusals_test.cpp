// Which options each way to keep weights together refuses (--sync), and those of Muon and --compress.
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "recipe/recipe.hpp"
#include "recipe/refusals.hpp"
#include "recipe/run_options.hpp"

namespace lockstep::recipe_test {

using Change = std::function<void(Settings&)>;

// Checks the settings of a training of LeNet after both changes.
std::function<void()> checked(const Change& base, const Change& change) {
  return [=] {
    Settings settings;
    settings.recipe.model = "lenet";
    settings.recipe.batch.global_batch = ChosenNumber{96};
    base(settings);
    change(settings);
    ValidSettings{settings};
  };
}

TEST(SyncTest, what_local_updates_cannot_keep_is_refused) {
  const auto refuses = [](const Change& change) {
    return checked(
        [](Settings& settings) {
          settings.recipe.sync = Sync::local;
          settings.recipe.batch.local_steps = 4;
        },
        change);
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

TEST(SyncTest, what_parameter_servers_cannot_keep_is_refused) {
  const auto refuses = [](const Change& change) {
    return checked([](Settings& settings) { settings.recipe.sync = Sync::servers; }, change);
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
  const auto refuses = [](const Change& change) {
    return checked(
        [](Settings& settings) {
          settings.recipe.batch.local_steps = 16;
          settings.recipe.sync = Sync::async_servers;
        },
        change);
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
  const auto refuses = [](const Change& change) {
    return checked([](Settings& settings) { settings.recipe.optimizer.kind = OptimizerKind::muon; }, change);
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
  const auto refuses = [](const Change& change) {
    return checked([](Settings& settings) { settings.recipe.powersgd_rank = 2; }, change);
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

}  // namespace lockstep::recipe_test
