// A sharded optimizer learns what a replicated one learns, bit for bit, and takes over its state at any step.
#include "step/sharded_sync.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "files/checkpoint/checkpoint.hpp"
#include "step/micro_batch_loader.hpp"
#include "step/sync_state.hpp"
#include "step/whole_step.hpp"
#include "support/no_room.hpp"
#include "support/samples/small_checkpoint.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::sharded_sync_test {

constexpr SampleShape shape{16, 16, 3};
constexpr int micro_batches = 2;  // of each rank

struct Case {
  const char* name;
  OptimizerOptions optimizer;
  std::optional<EmaRule> ema = {};
  const char* reducer = "shared";
  Sums sums = Sums::rounded;
  DType precision = DType::f32;
  bool is_written = false;  // the files of three cases have all groups
};

class ShardedSyncTest : public testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<WholeStep> make(bool is_sharded) const {
    const Case& choice = GetParam();
    return std::make_unique<WholeStep>(
        session_, ModelOptions{"resnet20", shape, 10}, share_,
        WeightSyncOptions{{.reducer = choice.reducer, .bucket_bytes = 64 << 10, .sums = choice.sums},
                          choice.optimizer,
                          choice.ema,
                          is_sharded},
        0.1F, 3);
  }
  std::string train(WholeStep& step, int first, int last) {
    MicroBatchLoader loader(session_.device(), shape, share_);
    std::string losses;
    for (int index = 0; index < last; ++index) {
      if (index < first) {
        for (int skipped = 0; skipped < micro_batches; ++skipped) loader.next();
        continue;
      }
      losses += fmt::format("{} ", step.run(loader, index, 0.05).metrics.loss());
    }
    return losses;
  }

  const Communicator world_{MPI_COMM_WORLD};
  const Session session_{world_, open_backend({.name = "cpu", .threads = 1, .precision = GetParam().precision})};
  const LoaderShare share_{micro_batch_size * micro_batches * world_.size(), micro_batches* world_.size(),
                           micro_batches* world_.rank(), micro_batches};
};

TEST_P(ShardedSyncTest, learns_what_a_replicated_one_learns) {
  const std::unique_ptr<WholeStep> sharded = make(true);
  const std::unique_ptr<WholeStep> replicated = make(false);
  EXPECT_FALSE(sharded->own_sync->is_replicated());
  EXPECT_TRUE(replicated->own_sync->is_replicated());
  EXPECT_EQ(train(*sharded, 0, 3), train(*replicated, 0, 3));
  EXPECT_EQ(hash_of(*sharded->own_sync), hash_of(*replicated->own_sync));
  EXPECT_EQ(sharded->model().store.weights_hash(), replicated->model().store.weights_hash());
}

TEST_P(ShardedSyncTest, goes_on_from_the_state_of_a_replicated_one_and_back) {
  const std::unique_ptr<WholeStep> straight = make(false);
  train(*straight, 0, 3);

  const std::unique_ptr<WholeStep> first = make(false);
  train(*first, 0, 1);
  const std::unique_ptr<WholeStep> second = make(true);
  second->own_sync->assign(tensors_of(*first->own_sync));
  second->own_sync->set_applied_steps(1);
  train(*second, 1, 2);
  const std::unique_ptr<WholeStep> third = make(false);
  third->own_sync->assign(tensors_of(*second->own_sync));
  third->own_sync->set_applied_steps(2);
  train(*third, 2, 3);
  EXPECT_EQ(hash_of(*third->own_sync), hash_of(*straight->own_sync));
}

TEST_P(ShardedSyncTest, lends_the_model_its_ema_on_every_rank_and_takes_it_back) {
  if (!GetParam().ema) GTEST_SKIP() << "keeps no EMA";
  const std::unique_ptr<WholeStep> step = make(true);
  train(*step, 0, 3);
  const std::string weights = step->model().store.weights_hash();
  const std::string ema = weights_hash(weights_to_use(*step->own_sync));
  EXPECT_NE(ema, weights);
  step->own_sync->exchange_ema();
  EXPECT_EQ(step->model().store.weights_hash(), ema);
  step->own_sync->exchange_ema();
  EXPECT_EQ(step->model().store.weights_hash(), weights);
  EXPECT_EQ(weights_hash(weights_to_use(*step->own_sync)), ema);
}

TEST_P(ShardedSyncTest, every_rank_keeps_only_its_part_of_the_state) {
  if (world_.size() == 1) GTEST_SKIP() << "has all of it";
  const std::unique_ptr<WholeStep> step = make(true);
  const std::int64_t all = step->model().store.gradient_count();
  const auto own = static_cast<double>(static_cast<const ShardedSync&>(*step->own_sync).own_count());
  EXPECT_EQ(world_.sum(own), static_cast<double>(all));
  EXPECT_LT(world_.max(own), 1.1 * static_cast<double>(all) / world_.size());
}

TEST_P(ShardedSyncTest, streams_the_checkpoint_that_a_replicated_one_writes) {
  if (!GetParam().is_written) GTEST_SKIP() << "as other cases";
  const std::unique_ptr<WholeStep> step = make(true);
  train(*step, 0, 3);
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "step.h5";
  const std::optional<StreamedCheckpoint> written = streamed(world_, *step->own_sync, path);
  if (!written) return;
  const std::vector<std::byte> image = checkpoint_image(written->expected);
  EXPECT_EQ(checkpoint_image(written->read), image);
  EXPECT_NEAR(static_cast<double>(std::filesystem::file_size(path)), static_cast<double>(image.size()), 4096);
}

// Rank 0 cannot write; every rank takes part to the end, and the next attempt succeeds.
TEST_P(ShardedSyncTest, a_full_disk_leaves_no_file_and_no_rank_behind) {
  if (!GetParam().is_written) GTEST_SKIP() << "as other cases";
  const std::unique_ptr<WholeStep> step = make(true);
  train(*step, 0, 1);
  const std::string before = hash_of(*step->own_sync);
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "step.h5";
  const auto write = [&] {
    std::optional<UnpublishedFile> file;
    if (world_.rank() == 0) file.emplace(path);
    stream_checkpoint(file ? &*file : nullptr, small_checkpoint(), *step->own_sync);
    if (file) file->publish([] {});
  };
  if (world_.rank() == 0) {
    const NoRoomBeyond limit(64 << 10);
    EXPECT_THROW(write(), Error);
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  } else {
    write();
  }
  EXPECT_EQ(hash_of(*step->own_sync), before);
  write();
  if (world_.rank() != 0) return;
  EXPECT_EQ(read_checkpoint(path).model.entries.size(), step->model().store.names().size());
}

// "mpi (1 rank), reduce-scatter": one rank has nothing to add.
TEST(ShardedSumsTest, are_named_where_they_may_change_bits) {
  const Communicator world(MPI_COMM_WORLD);
  const Session session{world, open_backend({.name = "cpu", .threads = 1})};
  const LoaderShare share{micro_batch_size * world.size(), world.size(), world.rank(), 1};
  const auto description = [&](const char* reducer) {
    return WholeStep(session, {"lenet", shape, 10}, share, {{.reducer = reducer}, {}, {}, true}, 0.0F, 3)
        .own_sync->description();
  };
  EXPECT_EQ(description("mpi"),
            world.size() == 1 ? "mpi (1 rank)" : fmt::format("mpi ({} ranks), reduce-scatter", world.size()));
  EXPECT_EQ(description("shared").find("reduce-scatter"), std::string::npos);
}

constexpr EmaRule ema{0.25F, 1, 1};
constexpr OptimizerOptions adamw{.kind = OptimizerKind::adamw};

INSTANTIATE_TEST_SUITE_P(
    , ShardedSyncTest,
    testing::Values(Case{"sgd", {.momentum_kind = Momentum::nesterov}, {}, "shared", Sums::rounded, DType::f32, true},
                    Case{"sgd_ema", {}, ema}, Case{"sgd_clip", {.clip = {.norm = 0.5F}}},
                    Case{"adamw_ema", adamw, ema, "shared", Sums::rounded, DType::f32, true},
                    Case{"lars", {.kind = OptimizerKind::lars}},
                    Case{"lars_clip_ema", {.kind = OptimizerKind::lars, .clip = {.norm = 0.5F}}, ema},
                    Case{"virtual_ranks", adamw, ema, "shared", Sums::reproducible, DType::f32, true},
                    Case{"virtual_ranks_mpi", {}, {}, "mpi", Sums::reproducible},
                    Case{"virtual_ranks_clip", {.clip = {.norm = 0.5F}}, {}, "auto", Sums::reproducible},
                    Case{"sgd_value", {.clip = {.value = 1e-3F}}},
                    Case{"lars_value", {.kind = OptimizerKind::lars, .clip = {.value = 1e-3F}}},
                    Case{"virtual_ranks_value",
                         {.kind = OptimizerKind::adamw, .clip = {.value = 1e-3F}},
                         ema,
                         "shared",
                         Sums::reproducible},
                    Case{"bf16", {}, ema, "shared", Sums::rounded, DType::bf16}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace lockstep::sharded_sync_test
