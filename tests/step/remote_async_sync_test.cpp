// Asynchronous updates whose trainers are programs of their own: rank 0 is the server, and all other ranks are trainers
// that know it by its port only.
#include "step/remote_async_sync.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/net/link_seal.hpp"
#include "step/micro_batch_loader.hpp"
#include "step/named_model.hpp"
#include "step/sync_state.hpp"
#include "step/whole_step.hpp"

namespace lockstep::remote_async_sync_test {

constexpr SampleShape shape{16, 16, 3};
constexpr int updates = 4;  // per trainer and step
constexpr std::int64_t steps = 3;

struct Case {
  const char* name;
  OptimizerOptions optimizer;
};

class RemoteAsyncTest : public testing::Test {
 protected:
  int trainers() const { return world_.size() - 1; }
  bool is_server() const { return world_.rank() == 0; }
  LoaderShare share() const {
    const int all = trainers() * updates;
    return {micro_batch_size * all, all, is_server() ? all : 0, is_server() ? 0 : all, all};
  }
  std::vector<double> rates() const {
    std::vector<double> all;
    for (int update = 0; update < trainers() * updates; ++update) all.push_back(0.05 + 0.001 * (update % updates));
    return all;
  }
  std::unique_ptr<WholeStep> make(const OptimizerOptions& optimizer, RemoteTrainers* server_end,
                                  RemoteServer* trainer_end, double lag_ratio) const {
    WeightSyncOptions options{{.bucket_bytes = 64 << 10}, optimizer, {}, false, {}, AsyncUpdates{lag_ratio}};
    options.remote_trainers = server_end;
    options.expected_trainers = trainers();
    options.remote_server = trainer_end;
    return std::make_unique<WholeStep>(session_, named_model("resnet20", shape), share(), options, 0.1F, 3);
  }

  // Rank 0 returns its step after `count` steps, the others null once they were ended.
  std::unique_ptr<WholeStep> train(const OptimizerOptions& optimizer, std::int64_t count, double lag_ratio = 1000) {
    const std::string token = world_.broadcast(draw_secret(), 0);
    if (!is_server()) {
      const std::string port = world_.broadcast("", 0);
      compute(optimizer, token, std::stoi(port), lag_ratio);
      world_.barrier();
      return nullptr;
    }
    remote_ = std::make_unique<RemoteTrainers>(token, 60);
    auto step = make(optimizer, remote_.get(), nullptr, lag_ratio);
    world_.broadcast(std::to_string(remote_->port()), 0);
    const std::unique_ptr<Loader> idle = make_idle_loader();
    for (std::int64_t index = 0; index < count && divergence_.empty(); ++index) {
      step->start(*idle, index, rates());
      const StepResult result = step->finish();
      divergence_ = result.divergence;
      metrics_.add(result.metrics);
    }
    remote_->end(0, "");
    world_.barrier();
    return step;
  }
  void compute(const OptimizerOptions& optimizer, const std::string& token, int port, double lag_ratio) {
    RemoteServer server(std::move(connect_to_node({"127.0.0.1"}, port, token, std::chrono::seconds(20)).value().socket),
                        "n1", 60, [] {});
    server.offer();
    const auto step = make(optimizer, nullptr, &server, lag_ratio);
    MicroBatchLoader samples(session_.device(), shape, share());
    auto& sync = dynamic_cast<RemoteTrainerSync&>(*step->own_sync);
    try {
      while (true) {
        const std::int64_t index = sync.take_work();
        if (has_lost_weights_) step->model().store.values().as<float>()[0] = std::numeric_limits<float>::quiet_NaN();
        step->start(samples, index, rates());
        step->finish();
      }
    } catch (const TrainingEnded& end) {
      EXPECT_EQ(end.code(), 0) << end.what();
    }
  }

  const Communicator world_{MPI_COMM_WORLD};
  const Communicator self_{MPI_COMM_SELF};
  const Session session_{self_, open_backend({.name = "cpu", .threads = 1})};
  std::unique_ptr<RemoteTrainers> remote_;
  Metrics metrics_;
  std::string divergence_;
  bool has_lost_weights_ = false;
};

class RemoteAsyncCaseTest : public RemoteAsyncTest, public testing::WithParamInterface<Case> {};

TEST_P(RemoteAsyncCaseTest, a_single_trainer_learns_what_it_learns_alone) {
  if (trainers() > 1) GTEST_SKIP() << "several trainers";
  const auto served = train(GetParam().optimizer, steps);
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
  EXPECT_EQ(metrics_.correct, expected.correct);
  EXPECT_EQ(metrics_.samples, expected.samples);
  EXPECT_NEAR(metrics_.loss(), expected.loss(), 1e-5);
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
  const auto step = train({.momentum_kind = Momentum::nesterov}, steps);
  if (step == nullptr) return;
  const Staleness& staleness = *step->sync().staleness();
  const std::int64_t all = steps * trainers() * updates;
  EXPECT_EQ(std::accumulate(staleness.pushed.begin(), staleness.pushed.end(), std::int64_t{0}), all);
  EXPECT_EQ(std::accumulate(staleness.applied.begin(), staleness.applied.end(), std::int64_t{0}), all);
  EXPECT_EQ(metrics_.samples, all * micro_batch_size);
  EXPECT_EQ(step->sync().own_updates(), std::vector<std::int64_t>{all});
  EXPECT_TRUE(staleness.of_programs);
}

// Three trainers begin a step with the same weights, and only gradients of at most three other updates are applied.
TEST_F(RemoteAsyncTest, gradients_that_are_too_old_are_dropped_and_counted) {
  if (trainers() < 3) GTEST_SKIP() << "one trainer";
  const auto step = train({.momentum_kind = Momentum::nesterov}, steps, 1);
  if (step == nullptr) return;
  const Staleness& staleness = *step->sync().staleness();
  EXPECT_EQ(staleness.applied.size(), 4U);
  const std::int64_t dropped = std::accumulate(staleness.dropped.begin(), staleness.dropped.end(), std::int64_t{0});
  EXPECT_EQ(step->sync().own_updates(), std::vector<std::int64_t>{steps * trainers() * updates - dropped});
}

TEST_F(RemoteAsyncTest, a_loss_that_is_not_finite_ends_the_training_and_changes_no_weight) {
  has_lost_weights_ = true;
  const auto step = train({.momentum_kind = Momentum::nesterov}, steps);
  if (step == nullptr) return;
  EXPECT_NE(divergence_.find("loss is nan at step 0"), std::string::npos) << divergence_;
  const WholeStep untouched(session_, named_model("resnet20", shape), LoaderShare{micro_batch_size, 1, 0, 1},
                            WeightSyncOptions{}, 0.1F, 3);
  EXPECT_EQ(step->model().store.weights_hash(), untouched.model().store.weights_hash());
}

}  // namespace lockstep::remote_async_sync_test
