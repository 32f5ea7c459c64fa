// Synchronous updates whose trainers are programs of their own: the bits of one rank with the same virtual ranks.
#include "step/remote_server_sync.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "step/served_training.hpp"
#include "step/sync_state.hpp"

namespace lockstep::remote_server_sync_test {

constexpr int virtual_ranks = 7;
constexpr EmaRule ema{0.25F, 1, 1};

struct Case {
  const char* name;
  OptimizerOptions optimizer = {.momentum_kind = Momentum::nesterov};
  std::optional<EmaRule> ema = {};
  const char* model = "resnet20";
};

class RemoteServerSyncTest : public ServedTrainingTest {
 protected:
  static WeightSyncOptions options(const Case& choice) {
    return {{.bucket_bytes = 64 << 10, .sums = Sums::reproducible}, choice.optimizer, choice.ema};
  }
  std::unique_ptr<WholeStep> learn(const Case& choice) {
    return train({choice.model, options(choice), virtual_ranks, {0.05}});
  }
  // On one rank.
  std::unique_ptr<WholeStep> learn_alone(const Case& choice, std::vector<StepResult>& results) const {
    const LoaderShare share{micro_batch_size * virtual_ranks, virtual_ranks, 0, virtual_ranks};
    auto step =
        std::make_unique<WholeStep>(session_, named_model(choice.model, shape), share, options(choice), 0.1F, 3);
    MicroBatchLoader loader(session_.device(), shape, share);
    for (std::int64_t index = 0; index < steps; ++index) results.push_back(step->run(loader, index, 0.05));
    return step;
  }
  void expect_same_as_alone(const WholeStep& served, const Case& choice) const {
    std::vector<StepResult> results;
    const auto alone = learn_alone(choice, results);
    EXPECT_EQ(hash_of(served.sync()), hash_of(alone->sync()));
    EXPECT_EQ(texts_of(results_), texts_of(results));
  }

 private:
  static std::vector<std::string> texts_of(const std::vector<StepResult>& results) {
    std::vector<std::string> texts;
    for (const StepResult& one : results) {
      texts.push_back(fmt::format("{}: {} {} of {}, {}, {} {}", one.step, one.metrics.loss(), one.metrics.correct,
                                  one.metrics.samples, one.gradient_norm, one.asked_to_stop, one.divergence));
    }
    return texts;
  }
};

class RemoteServerSyncCaseTest : public RemoteServerSyncTest, public testing::WithParamInterface<Case> {};

TEST_P(RemoteServerSyncCaseTest, any_number_of_trainers_learns_what_one_rank_learns) {
  const auto served = learn(GetParam());
  if (served != nullptr) expect_same_as_alone(*served, GetParam());
}

INSTANTIATE_TEST_SUITE_P(, RemoteServerSyncCaseTest,
                         testing::Values(Case{"sgd", {.momentum_kind = Momentum::nesterov}, ema},
                                         Case{"adamw", {.kind = OptimizerKind::adamw}, ema},
                                         Case{"lars", {.kind = OptimizerKind::lars}},
                                         Case{"muon", {.kind = OptimizerKind::muon}, ema},
                                         Case{"clip", {.clip = {.norm = 0.5F, .value = 0.1F}}},
                                         Case{"dropout", {}, {}, "dropout"}),
                         [](const auto& test) { return std::string(test.param.name); });

// It fails in its second step, or later if others are faster, with micro-batches that it did not push.
TEST_F(RemoteServerSyncTest, a_trainer_that_leaves_within_a_step_changes_nothing) {
  if (trainers() == 1) GTEST_SKIP() << "no other trainer";
  failing_batch_ = 4;
  const Case choice{"sgd", {.momentum_kind = Momentum::nesterov}, ema};
  const auto served = learn(choice);
  if (served != nullptr) expect_same_as_alone(*served, choice);
}

TEST_F(RemoteServerSyncTest, a_server_can_ask_for_a_stop) {
  stop_before_ = 1;
  const auto served = learn({"sgd"});
  if (served == nullptr) return;
  EXPECT_FALSE(results_[0].asked_to_stop);
  EXPECT_TRUE(results_[1].asked_to_stop);
}

TEST_F(RemoteServerSyncTest, values_that_are_not_finite_end_the_training_and_change_no_weight) {
  has_lost_weights_ = true;
  const auto served = learn({"sgd", {.momentum_kind = Momentum::nesterov}, ema});
  if (served == nullptr) return;
  ASSERT_EQ(results_.size(), 1U);
  EXPECT_TRUE(results_[0].divergence.starts_with("gradients overflow at step 0")) << results_[0].divergence;
  const WholeStep untouched(session_, named_model("resnet20", shape), LoaderShare{micro_batch_size, 1, 0, 1},
                            WeightSyncOptions{}, 0.1F, 3);
  EXPECT_EQ(served->model().store.weights_hash(), untouched.model().store.weights_hash());
}

// So that another thread may save it at any time of a step.
TEST_F(RemoteServerSyncTest, the_server_has_the_whole_state) {
  const auto served = learn({"sgd"});
  if (served == nullptr) return;
  EXPECT_TRUE(served->sync().is_replicated());
}

}  // namespace lockstep::remote_server_sync_test
