// Parameter servers: the bits of an all-reduce over the trainers, whatever the number of servers.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

#include "comm/server_all_reducer.hpp"
#include "step/micro_batch_loader.hpp"
#include "step/named_model.hpp"
#include "step/sync_state.hpp"
#include "step/whole_step.hpp"

namespace lockstep::server_sync_test {

constexpr SampleShape shape{16, 16, 3};
constexpr int steps = 4;

struct Case {
  const char* name;
  OptimizerOptions optimizer;
  std::optional<int> virtual_ranks = {};
  std::optional<EmaRule> ema = {};
  bool needs_one_server = false;
};

class ServerSyncTest : public testing::TestWithParam<Case> {
 protected:
  WeightSyncOptions options(int servers) const {
    AllReduceOptions reduce{.reducer = "shared", .bucket_bytes = 64 << 10, .servers = servers};
    if (GetParam().virtual_ranks) reduce.sums = Sums::reproducible;
    return {reduce, GetParam().optimizer, GetParam().ema};
  }
  BatchOptions batch(int trainers) const {
    const std::int64_t parts = GetParam().virtual_ranks.value_or(trainers * 2);
    return {ChosenNumber{parts * micro_batch_size}, std::nullopt, GetParam().virtual_ranks ? 1 : 2,
            GetParam().virtual_ranks};
  }
  // Losses and all tensors.
  std::string learn(const Communicator& world, int servers) const {
    const Session session{world, open_backend({.name = "cpu", .threads = 1})};
    const LoaderShare share =
        loader_share(batch(trainers_of(world.size(), servers)), world.rank(), world.size(), servers);
    WholeStep step(session, named_model("resnet20", shape), share, options(servers), 0.1F, 3);
    const std::unique_ptr<Loader> loader = share.micro_batches == 0
                                               ? make_idle_loader()
                                               : std::make_unique<MicroBatchLoader>(session.device(), shape, share);
    std::string outcome;
    for (int index = 0; index < steps; ++index) {
      const StepResult result = step.run(*loader, index, 0.05);
      outcome += fmt::format("{} {} {} ", result.metrics.loss(), result.metrics.correct, result.gradient_norm);
    }
    return outcome + hash_of(*step.own_sync) + step.model().store.weights_hash();
  }

  const Communicator world_{MPI_COMM_WORLD};
};

TEST_P(ServerSyncTest, any_number_of_servers_learns_what_the_trainers_learn_alone) {
  const int most = GetParam().needs_one_server ? 1 : world_.size() - 1;
  for (int servers = 1; servers <= most; ++servers) {
    const int trainers = trainers_of(world_.size(), servers);
    const std::string served = learn(world_, servers);
    for (const std::string& other : world_.all_gather(served)) EXPECT_EQ(other, served);
    const bool is_trainer = world_.rank() < trainers;
    const Communicator alone = world_.split(is_trainer ? 0 : 1, world_.rank());
    EXPECT_EQ(is_trainer ? learn(alone, 0) : served, served) << servers << " servers";
    world_.barrier();
  }
}

constexpr EmaRule ema{0.25F, 1, 1};

INSTANTIATE_TEST_SUITE_P(, ServerSyncTest,
                         testing::Values(Case{"sgd", {.momentum_kind = Momentum::nesterov}, {}, ema},
                                         Case{"clip", {.clip = {.norm = 0.5F}}},
                                         Case{"lars", {.kind = OptimizerKind::lars}},
                                         Case{"muon", {.kind = OptimizerKind::muon}, {}, ema, true},
                                         Case{"adamw_virtual_ranks", {.kind = OptimizerKind::adamw}, 6, ema},
                                         Case{"clip_virtual_ranks", {.clip = {.norm = 0.5F, .value = 0.1F}}, 6}),
                         [](const auto& test) { return std::string(test.param.name); });

// A rank that has no samples still learns of a stop, and can ask for one.
TEST(ServerStopTest, a_server_can_ask_for_a_stop) {
  const Communicator world(MPI_COMM_WORLD);
  if (world.size() == 1) GTEST_SKIP() << "no server";
  const Session session{world, open_backend({.name = "cpu", .threads = 1})};
  const LoaderShare share =
      loader_share({ChosenNumber{micro_batch_size * (world.size() - 1)}, std::nullopt}, world.rank(), world.size(), 1);
  WholeStep step(session, named_model("lenet", shape), share, {{.servers = 1}, {}, {}}, 0.0F, 3);
  const std::unique_ptr<Loader> loader = share.micro_batches == 0
                                             ? make_idle_loader()
                                             : std::make_unique<MicroBatchLoader>(session.device(), shape, share);
  EXPECT_FALSE(step.run(*loader, 0, 0.05).asked_to_stop);
  if (world.rank() == world.size() - 1) step.own_sync->request_stop();
  EXPECT_TRUE(step.run(*loader, 1, 0.05).asked_to_stop);
}

}  // namespace lockstep::server_sync_test
