// Asynchronous updates: alone, a trainer learns what it learns without servers; several share the micro-batches as they
// are ready.
#include "step/async_sync.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "step/micro_batch_loader.hpp"
#include "step/named_model.hpp"
#include "step/slow_loader.hpp"
#include "step/sync_state.hpp"
#include "step/whole_step.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::async_sync_test {

constexpr SampleShape shape{16, 16, 3};
constexpr int updates = 4;  // per trainer and step

struct Case {
  const char* name;
  OptimizerOptions optimizer;
  bool needs_one_server = false;
};

// Fails at its second micro-batch.
class FailingLoader final : public Loader {
 public:
  explicit FailingLoader(std::unique_ptr<Loader> inner) : inner_(std::move(inner)) {}
  void request(std::int64_t micro_batch) override { inner_->request(micro_batch); }
  const Batch& next() override {
    if (calls_++ == 1) throw Error(Failure::bad_data, "sample 7 is damaged.");
    return inner_->next();
  }
  double waited_ms() const override { return 0; }

 private:
  std::unique_ptr<Loader> inner_;
  int calls_ = 0;
};

class AsyncSyncTest : public testing::Test {
 protected:
  static LoaderShare share_of(int trainers, int rank) {
    const int all = trainers * updates;
    const bool is_trainer = rank < trainers;
    return {micro_batch_size * all, all, is_trainer ? rank * updates : all, is_trainer ? updates : 0, all};
  }
  static WeightSyncOptions options_of(const OptimizerOptions& optimizer, int servers, double lag_ratio = 1.5) {
    return {{.bucket_bytes = 64 << 10, .servers = servers}, optimizer, {}, false, {}, AsyncUpdates{lag_ratio}};
  }
  std::unique_ptr<WholeStep> make(int servers, const OptimizerOptions& optimizer, double lag_ratio = 1.5) const {
    return std::make_unique<WholeStep>(session_, named_model("resnet20", shape),
                                       share_of(world_.size() - servers, world_.rank()),
                                       options_of(optimizer, servers, lag_ratio), 0.1F, 3);
  }
  std::unique_ptr<Loader> loader(int servers) const {
    const LoaderShare share = share_of(world_.size() - servers, world_.rank());
    if (share.micro_batches == 0) return make_idle_loader();
    return std::make_unique<MicroBatchLoader>(session_.device(), shape, share);
  }
  // Of each update in a step.
  static std::vector<double> rates(int count) {
    std::vector<double> all;
    for (int update = 0; update < count; ++update) all.push_back(0.05 + 0.001 * update);
    return all;
  }
  StepResult run(WholeStep& step, Loader& loader, std::int64_t index, int servers) const {
    step.start(loader, index, rates((world_.size() - servers) * updates));
    return step.finish();
  }
  void expect_common(const std::string& text) const {
    for (const std::string& other : world_.all_gather(text)) EXPECT_EQ(other, text);
  }

  const Communicator world_{MPI_COMM_WORLD};
  const Session session_{world_, open_backend({.name = "cpu", .threads = 1})};
};

class AsyncCaseTest : public AsyncSyncTest, public testing::WithParamInterface<Case> {};

TEST_P(AsyncCaseTest, a_single_trainer_learns_what_it_learns_alone) {
  const int servers = world_.size() - 1;
  if (GetParam().needs_one_server && servers > 1) GTEST_SKIP() << "several servers";
  constexpr int steps = 3;
  const auto served = make(servers, GetParam().optimizer);
  const std::unique_ptr<Loader> samples = loader(servers);
  double loss = 0;
  for (int index = 0; index < steps; ++index) loss += run(*served, *samples, index, servers).metrics.loss();
  expect_common(served->model().store.weights_hash());

  const Communicator self(MPI_COMM_SELF);
  const Session alone{self, open_backend({.name = "cpu", .threads = 1})};
  const LoaderShare one{micro_batch_size, 1, 0, 1};
  WholeStep step(alone, named_model("resnet20", shape), one, WeightSyncOptions{{}, GetParam().optimizer, {}}, 0.1F, 3);
  MicroBatchLoader same(alone.device(), shape, share_of(1, 0));
  double loss_alone = 0;
  for (int index = 0; index < steps * updates; ++index) {
    loss_alone += step.run(same, index, rates(updates)[static_cast<std::size_t>(index % updates)]).metrics.loss();
  }
  EXPECT_EQ(served->model().store.weights_hash(), step.model().store.weights_hash());
  EXPECT_NEAR(loss, loss_alone / updates, 1e-5);
  EXPECT_EQ(served->sync().own_updates(), std::vector<std::int64_t>{steps * updates});
  EXPECT_EQ(served->sync().staleness()->applied.front(), steps * updates);
}

// As a checkpoint keeps it. With one trainer the order of updates is certain.
TEST_P(AsyncCaseTest, a_training_that_goes_on_has_the_bits_of_one_that_was_not_interrupted) {
  const int servers = world_.size() - 1;
  if (GetParam().needs_one_server && servers > 1) GTEST_SKIP() << "several servers";
  const auto whole = make(servers, GetParam().optimizer);
  const std::unique_ptr<Loader> samples = loader(servers);
  run(*whole, *samples, 0, servers);
  const TrainingTensors tensors = tensors_of(*whole->own_sync);
  const std::vector<std::int64_t> own_updates = whole->sync().own_updates();
  run(*whole, *samples, 1, servers);

  const auto resumed = make(servers, GetParam().optimizer);
  resumed->own_sync->assign(tensors);
  resumed->own_sync->set_own_updates(own_updates);
  resumed->own_sync->set_applied_steps(1);
  const std::unique_ptr<Loader> rest = loader(servers);
  run(*resumed, *rest, 1, servers);
  EXPECT_EQ(hash_of(*resumed->own_sync), hash_of(*whole->own_sync));
}

INSTANTIATE_TEST_SUITE_P(, AsyncCaseTest,
                         testing::Values(Case{"sgd", {.momentum_kind = Momentum::nesterov}},
                                         Case{"adamw", {.kind = OptimizerKind::adamw}},
                                         Case{"lars", {.kind = OptimizerKind::lars}, true},
                                         Case{"muon", {.kind = OptimizerKind::muon}, true},
                                         Case{"clip", {.clip = {.norm = 0.5F}}, true}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_F(AsyncSyncTest, a_slow_trainer_takes_fewer_micro_batches_and_all_are_taken_once) {
  for (int servers = 1; servers + 1 < world_.size(); ++servers) {
    const int trainers = world_.size() - servers;
    const auto step = make(servers, {.momentum_kind = Momentum::nesterov}, 1000);
    std::unique_ptr<Loader> samples = loader(servers);
    if (world_.rank() == 0) {
      samples = std::make_unique<SlowLoader>(std::move(samples), std::chrono::milliseconds(300));
    }
    constexpr int steps = 2;
    for (int index = 0; index < steps; ++index) {
      const StepResult result = run(*step, *samples, index, servers);
      EXPECT_TRUE(std::isfinite(result.metrics.loss()));
      EXPECT_EQ(result.metrics.samples, trainers * updates * micro_batch_size);
    }
    expect_common(step->model().store.weights_hash());
    const Staleness& staleness = *step->sync().staleness();
    EXPECT_EQ(std::accumulate(staleness.pushed.begin(), staleness.pushed.end(), std::int64_t{0}),
              steps * trainers * updates);
    EXPECT_EQ(std::accumulate(staleness.applied.begin(), staleness.applied.end(), std::int64_t{0}),
              steps * trainers * updates);
    EXPECT_EQ(staleness.dropped, std::vector<std::int64_t>(static_cast<std::size_t>(trainers)));
    EXPECT_LT(staleness.pushed.front(), steps * updates);
    EXPECT_EQ(step->sync().own_updates(), std::vector<std::int64_t>{steps * trainers * updates});
  }
}

// The slow one's first gradient comes when the others have made nearly all updates of the step.
TEST_F(AsyncSyncTest, gradients_that_are_too_old_are_dropped_and_counted) {
  if (world_.size() < 4) GTEST_SKIP() << "one trainer";
  const auto step = make(1, {.momentum_kind = Momentum::nesterov}, 1);
  std::unique_ptr<Loader> samples = loader(1);
  if (world_.rank() == 0) samples = std::make_unique<SlowLoader>(std::move(samples), std::chrono::milliseconds(500));
  run(*step, *samples, 0, 1);
  const Staleness& staleness = *step->sync().staleness();
  EXPECT_EQ(staleness.applied.size(), 4U);  // ages 0 to 3, with three trainers
  EXPECT_GE(staleness.dropped.front(), 1);
  const std::int64_t dropped = std::accumulate(staleness.dropped.begin(), staleness.dropped.end(), std::int64_t{0});
  EXPECT_EQ(step->sync().own_updates(), std::vector<std::int64_t>{3 * updates - dropped});
  expect_common(step->model().store.weights_hash());
}

TEST_F(AsyncSyncTest, a_loss_that_is_not_finite_ends_the_training_on_all_ranks) {
  const auto step = make(1, {.momentum_kind = Momentum::nesterov});
  if (world_.rank() == 0) {
    step->own_sync->begin_micro_batch(0, 1);
    step->model().store.values().as<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  }
  const std::unique_ptr<Loader> samples = loader(1);
  const StepResult result = run(*step, *samples, 0, 1);
  EXPECT_FALSE(result.divergence.empty());
  expect_common(result.divergence);
}

TEST_F(AsyncSyncTest, a_trainer_that_fails_ends_the_step_for_all) {
  const auto step = make(1, {.momentum_kind = Momentum::nesterov});
  std::unique_ptr<Loader> samples = loader(1);
  if (world_.rank() == 0) samples = std::make_unique<FailingLoader>(std::move(samples));
  try {
    run(*step, *samples, 0, 1);
    FAIL() << "nothing thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), Failure::bad_data);
  }
}

}  // namespace lockstep::async_sync_test
