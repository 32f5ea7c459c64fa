// Asynchronous updates whose trainers are programs of their own.
#include "step/remote_async_sync.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "step/served_training.hpp"

namespace lockstep::remote_async_sync_test {

constexpr int updates = 4;  // per trainer and step

struct Case {
  const char* name;
  OptimizerOptions optimizer;
};

class RemoteAsyncTest : public ServedTrainingTest {
 protected:
  std::vector<double> rates() const {
    std::vector<double> all;
    for (int update = 0; update < trainers() * updates; ++update) all.push_back(0.05 + 0.001 * (update % updates));
    return all;
  }
  std::unique_ptr<WholeStep> learn(const OptimizerOptions& optimizer, double lag_ratio = 1000) {
    return train({"resnet20",
                  {{.bucket_bytes = 64 << 10}, optimizer, {}, false, {}, AsyncUpdates{lag_ratio}},
                  trainers() * updates,
                  rates()});
  }
  Metrics metrics() const {
    Metrics all;
    for (const StepResult& result : results_) all.add(result.metrics);
    return all;
  }
};

class RemoteAsyncCaseTest : public RemoteAsyncTest, public testing::WithParamInterface<Case> {};

TEST_P(RemoteAsyncCaseTest, a_single_trainer_learns_what_it_learns_alone) {
  if (trainers() > 1) GTEST_SKIP() << "several trainers";
  const auto served = learn(GetParam().optimizer);
  if (served == nullptr) return;
  const LoaderShare one{micro_batch_size, 1, 0, 1};
  WholeStep alone(session_, named_model("resnet20", shape), one, WeightSyncOptions{{}, GetParam().optimizer, {}}, 0.1F,
                  3);
  MicroBatchLoader same(session_.device(), shape, {micro_batch_size * updates, updates, 0, updates, updates});
  Metrics expected;
  for (int index = 0; index < steps * updates; ++index) {
    expected.add(alone.run(same, index, rates()[static_cast<std::size_t>(index % updates)]).metrics);
  }
  EXPECT_EQ(served->model().store.weights_hash(), alone.model().store.weights_hash());
  EXPECT_EQ(metrics().correct, expected.correct);
  EXPECT_EQ(metrics().samples, expected.samples);
  EXPECT_NEAR(metrics().loss(), expected.loss(), 1e-5);
  EXPECT_EQ(served->sync().own_updates(), std::vector<std::int64_t>{steps * updates});
}

INSTANTIATE_TEST_SUITE_P(, RemoteAsyncCaseTest,
                         testing::Values(Case{"sgd", {.momentum_kind = Momentum::nesterov}},
                                         Case{"adamw", {.kind = OptimizerKind::adamw}},
                                         Case{"lars", {.kind = OptimizerKind::lars}},
                                         Case{"muon", {.kind = OptimizerKind::muon}},
                                         Case{"clip", {.clip = {.norm = 0.5F}}}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_F(RemoteAsyncTest, every_micro_batch_is_taken_once_and_counted) {
  const auto step = learn({.momentum_kind = Momentum::nesterov});
  if (step == nullptr) return;
  const Staleness& staleness = *step->sync().staleness();
  const std::int64_t all = steps * trainers() * updates;
  EXPECT_EQ(std::accumulate(staleness.pushed.begin(), staleness.pushed.end(), std::int64_t{0}), all);
  EXPECT_EQ(std::accumulate(staleness.applied.begin(), staleness.applied.end(), std::int64_t{0}), all);
  EXPECT_EQ(metrics().samples, all * micro_batch_size);
  EXPECT_EQ(step->sync().own_updates(), std::vector<std::int64_t>{all});
  EXPECT_TRUE(staleness.of_programs);
}

// Three trainers begin a step with the same weights, and only gradients of at most three other updates are applied.
TEST_F(RemoteAsyncTest, gradients_that_are_too_old_are_dropped_and_counted) {
  if (trainers() < 3) GTEST_SKIP() << "one trainer";
  const auto step = learn({.momentum_kind = Momentum::nesterov}, 1);
  if (step == nullptr) return;
  const Staleness& staleness = *step->sync().staleness();
  EXPECT_EQ(staleness.applied.size(), 4U);
  const std::int64_t dropped = std::accumulate(staleness.dropped.begin(), staleness.dropped.end(), std::int64_t{0});
  EXPECT_EQ(step->sync().own_updates(), std::vector<std::int64_t>{steps * trainers() * updates - dropped});
}

TEST_F(RemoteAsyncTest, a_loss_that_is_not_finite_ends_the_training_and_changes_no_weight) {
  has_lost_weights_ = true;
  const auto step = learn({.momentum_kind = Momentum::nesterov});
  if (step == nullptr) return;
  const std::string& divergence = results_.back().divergence;
  EXPECT_NE(divergence.find("loss is nan at step 0"), std::string::npos) << divergence;
  const WholeStep untouched(session_, named_model("resnet20", shape), LoaderShare{micro_batch_size, 1, 0, 1},
                            WeightSyncOptions{}, 0.1F, 3);
  EXPECT_EQ(step->model().store.weights_hash(), untouched.model().store.weights_hash());
}

}  // namespace lockstep::remote_async_sync_test
