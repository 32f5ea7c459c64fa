// Training with compressed gradients: ranks stay together, learn, and go on from their state with the same bits.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/log.hpp"
#include "step/all_reduce_sync.hpp"
#include "step/micro_batch_loader.hpp"
#include "step/named_model.hpp"
#include "step/sync_state.hpp"
#include "step/whole_step.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::compressed_sync_test {

constexpr SampleShape shape{16, 16, 3};
constexpr double rate = 0.05;

struct Case {
  const char* name;
  int updates;  // of each rank's own weights in a step; 0: no rank has any
  OptimizerOptions optimizer;
  std::optional<EmaRule> ema = {};
};

class CompressedSyncTest : public testing::TestWithParam<Case> {
 protected:
  int micro_batches() const { return std::max(GetParam().updates, 1); }
  LoaderShare share_of(const Communicator& world) const {
    const int count = micro_batches();
    return {micro_batch_size * world.size() * count, world.size() * count, world.rank() * count, count,
            GetParam().updates};
  }
  std::unique_ptr<WholeStep> make(const Session& session) const {
    WeightSyncOptions options{{.bucket_bytes = 64 << 10, .powersgd_rank = 2}, GetParam().optimizer, GetParam().ema};
    if (GetParam().updates > 0) options.local = LocalUpdates{GetParam().updates, 0.7F, 0.9F};
    return std::make_unique<WholeStep>(session, named_model("resnet20", shape), share_of(session.world), options, 0.0F,
                                       3);
  }
  // Steps [first, last) of the whole training; returns the losses.
  std::string train(WholeStep& step, int first, int last) const {
    MicroBatchLoader loader(session_.device(), shape, share_of(world_));
    std::string losses;
    for (int skipped = 0; skipped < first * micro_batches(); ++skipped) loader.next();
    for (int index = first; index < last; ++index) {
      losses += fmt::format("{} ", step.run(loader, index, rate).metrics.loss());
    }
    return losses;
  }
  void go_on(WholeStep& step, const WholeStep& from, int steps) const {
    step.own_sync->assign(tensors_of(*from.own_sync));
    step.own_sync->set_applied_steps(steps);
    const std::vector<std::int64_t> updates = from.own_sync->own_updates();
    if (!updates.empty()) step.own_sync->set_own_updates(updates);
  }

  const Communicator world_{MPI_COMM_WORLD};
  const Communicator self_{MPI_COMM_SELF};
  const Session session_{world_, open_backend({.name = "cpu", .threads = 1})};
};

TEST_P(CompressedSyncTest, weights_and_results_are_the_same_on_all_ranks) {
  const auto step = make(session_);
  const std::string outcome = train(*step, 0, 3) + step->model().store.weights_hash();
  for (const std::string& other : world_.all_gather(outcome)) EXPECT_EQ(other, outcome);
  EXPECT_NE(step->own_sync->description().find("PowerSGD of rank 2"), std::string::npos);
}

TEST_P(CompressedSyncTest, goes_on_from_its_state_with_the_same_bits) {
  const auto straight = make(session_);
  const std::string losses = train(*straight, 0, 5);
  const auto first = make(session_);
  std::string parts = train(*first, 0, 2);
  const auto second = make(session_);
  train(*second, 0, 1);  // what is there is replaced
  go_on(*second, *first, 2);
  parts += train(*second, 2, 5);
  EXPECT_EQ(parts, losses);
  EXPECT_EQ(hash_of(*second->own_sync), hash_of(*straight->own_sync));
}

TEST_P(CompressedSyncTest, the_checkpoint_has_every_ranks_residual_and_the_common_factors) {
  const auto step = make(session_);
  train(*step, 0, 2);
  const TemporaryFolder folder;
  EXPECT_FALSE(step->own_sync->is_replicated());
  const auto written = streamed(world_, *step->own_sync, folder.path() / "step.h5");
  if (!written) return;
  EXPECT_EQ(checkpoint_image(written->read), checkpoint_image(written->expected));
  const std::size_t parameters = step->model().store.parameters().size();
  EXPECT_EQ(written->read.optimizer.at("compression_factors").size(), parameters);
  EXPECT_EQ(written->read.optimizer.at("compression_residual").size(),
            parameters * static_cast<std::size_t>(world_.size()));
}

TEST_P(CompressedSyncTest, on_another_number_of_ranks_nothing_is_added_and_it_says_so) {
  const auto before = make(session_);
  train(*before, 0, 2);
  const Session alone{self_, open_backend({.name = "cpu", .threads = 1})};
  const auto after = make(alone);
  testing::internal::CaptureStderr();
  go_on(*after, *before, 2);
  const std::string warning = testing::internal::GetCapturedStderr();
  const TrainingTensors was = tensors_of(*before->own_sync);
  const TrainingTensors now = tensors_of(*after->own_sync);
  const bool is_anew = world_.size() > 1;
  EXPECT_EQ(weights_hash(now.weights), weights_hash(was.weights));
  EXPECT_EQ(weights_hash(now.optimizer.at("compression_factors")),
            weights_hash(was.optimizer.at("compression_factors")));
  if (is_anew) expect_message(warning.substr(warning.rfind(log::prefix()) + log::prefix().size()), {"--compress"});
  for (const ParameterStore::Entry& entry : now.optimizer.at("compression_residual")) {
    const bool is_compressed = entry.name == "rank000000.layer3.0.conv2.weight";
    const bool is_zero = std::ranges::all_of(entry.values, [](float value) { return value == 0; });
    if (is_compressed) {
      EXPECT_EQ(is_zero, is_anew);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    , CompressedSyncTest,
    testing::Values(Case{"sgd", 0, {.momentum = 0.9F, .weight_decay = 1e-3F}, EmaRule{0.25F, 1, 1}},
                    Case{"adamw_clip", 0, {.kind = OptimizerKind::adamw, .clip = {.norm = 0.5F}}},
                    Case{"local", 2, {.momentum = 0.9F}}, Case{"muon", 0, {.kind = OptimizerKind::muon}}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace lockstep::compressed_sync_test
