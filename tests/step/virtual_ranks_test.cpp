// With virtual ranks the weights are the same, bit for bit, whatever the number of ranks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/precision.hpp"
#include "step/all_reduce.hpp"
#include "step/micro_batch_loader.hpp"
#include "step/named_model.hpp"
#include "step/noise.hpp"
#include "step/whole_step.hpp"

namespace lockstep::virtual_ranks_test {

constexpr int virtual_ranks = 5;  // so that most numbers of ranks carry unequal shares
constexpr SampleShape shape{16, 16, 3};

struct Case {
  const char* model;
  const char* reducer;
  int bucket_kib;
  DType precision;
  OptimizerKind optimizer = OptimizerKind::sgd;
  const char* optimizer_name = "sgd";
};

// Hash and losses after a few steps.
std::string learn(const Communicator& world, const Case& choice, int threads) {
  const Session session{world, open_backend({.name = "cpu", .threads = threads, .precision = choice.precision})};
  BatchOptions batch{ChosenNumber{virtual_ranks * micro_batch_size}, std::nullopt, 1, virtual_ranks};
  const LoaderShare share = loader_share(batch, world.rank(), world.size());
  const AllReduceOptions reduce{
      .reducer = choice.reducer, .bucket_bytes = choice.bucket_kib << 10, .sums = Sums::reproducible};
  WholeStep step(session, named_model(choice.model, shape), share, reduce,
                 {.kind = choice.optimizer, .clip = {.norm = 0.5F}}, 0.1F, 3);
  MicroBatchLoader loader(session.device(), shape, share);
  std::string outcome;
  for (int index = 0; index < 4; ++index) {
    const Metrics metrics = step.run(loader, index, 0.05).metrics;
    outcome += fmt::format("{} {} ", metrics.loss(), metrics.correct);
  }
  return outcome + step.model().store.weights_hash();
}

class VirtualRanksTest : public testing::TestWithParam<Case> {};

TEST_P(VirtualRanksTest, ranks_together_learn_what_one_rank_learns_alone) {
  const Communicator world(MPI_COMM_WORLD);
  const std::string together = learn(world, GetParam(), 1);
  // Other reductions, other buckets, other threads.
  const Case alone{GetParam().model, "mpi", 64, GetParam().precision, GetParam().optimizer};
  EXPECT_EQ(together, learn(Communicator(MPI_COMM_SELF), alone, 3));
}

INSTANTIATE_TEST_SUITE_P(, VirtualRanksTest,
                         testing::Values(Case{"lenet", "shared", 16, DType::f32}, Case{"lenet", "mpi", 16, DType::f32},
                                         Case{"dropout", "auto", 16, DType::f32},
                                         Case{"resnet20", "auto", 128, DType::f32},
                                         Case{"resnet20", "auto", 128, DType::bf16},
                                         Case{"resnet20", "auto", 128, DType::f32, OptimizerKind::lars, "lars"},
                                         Case{"resnet20", "auto", 128, DType::f32, OptimizerKind::adamw, "adamw"},
                                         Case{"resnet20", "auto", 128, DType::f32, OptimizerKind::muon, "muon"}),
                         [](const auto& test) {
                           return std::string(test.param.model) + "_" + test.param.reducer + "_" +
                                  precision_name(test.param.precision) + "_" + test.param.optimizer_name;
                         });

// One image in all places of a batch: only dropout tells its samples apart.
class OneImageLoader final : public Loader {
 public:
  OneImageLoader(Device& device, std::int64_t samples) : batch_(noise_batch(device, shape, samples, 10)) {
    std::vector<float> pixels(static_cast<std::size_t>(batch_.images.shape().count()));
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i % (shape.height * 3)) / 64;
    device.write(pixels, batch_.images);
    device.write(std::vector<float>(static_cast<std::size_t>(samples), 3.0F), batch_.labels);
  }
  const Batch& next() override { return batch_; }
  double waited_ms() const override { return 0; }

 private:
  Batch batch_;
};

TEST(DropoutDrawsTest, draws_belong_to_samples_however_a_batch_is_divided) {
  const Communicator self(MPI_COMM_SELF);
  const auto first_loss = [&](int micro_batches, std::uint64_t seed) {
    const Session session{self, open_backend({.name = "cpu", .threads = 1})};
    const LoaderShare share{8, micro_batches, 0, micro_batches};
    WholeStep step(session, named_model("dropout", shape), share, {}, OptimizerOptions{}, 0.0F, seed);
    initialize(step.model().store, 3);
    OneImageLoader loader(session.device(), share.micro_batch_size());
    return step.run(loader, 5, 0.05).metrics.loss();
  };
  const double whole = first_loss(1, 3);
  EXPECT_NEAR(first_loss(2, 3), whole, 1e-5 * whole);
  EXPECT_NEAR(first_loss(8, 3), whole, 1e-5 * whole);
  EXPECT_GT(std::abs(first_loss(1, 4) - whole), 1e-4 * whole);
}

TEST(ReproducibleSumsTest, leave_room_for_all_parts_of_a_step) {
  const Communicator world(MPI_COMM_WORLD);
  const Session session{world, open_backend({.name = "cpu", .threads = 1})};
  Model model(session.device(), {"lenet", shape, 10});
  constexpr int micro_batches = 8;
  const std::unique_ptr<AllReduce> exchange =
      make_all_reduce(session, model.store, {.sums = Sums::reproducible}, micro_batches);
  const float limit = fixed_point_for(micro_batches).limit;
  for (const auto& [value, overflows] : {std::pair(limit / 2, 0), std::pair(limit, world.size())}) {
    session.device().write(std::vector<float>{value}, model.store.gradients().slice(0, 1));
    exchange->begin_micro_batch(0, 1);
    for (const Parameter& parameter : std::views::reverse(model.store.parameters())) exchange->ready(parameter);
    exchange->finish();
    float count = -1;
    session.device().read(model.store.metric_slots(ParameterStore::overflow_slot), std::span(&count, 1));
    EXPECT_EQ(count, static_cast<float>(overflows));
  }
}

TEST(ReproducibleSumsTest, what_no_whole_number_holds_ends_the_training_on_every_rank) {
  const Communicator world(MPI_COMM_WORLD);
  const Session session{world, open_backend({.name = "cpu", .threads = 1})};
  const BatchOptions batch{ChosenNumber{virtual_ranks * micro_batch_size}, std::nullopt, 1, virtual_ranks};
  const LoaderShare share = loader_share(batch, world.rank(), world.size());
  WholeStep step(session, {"lenet", shape, 10}, share, {.sums = Sums::reproducible}, OptimizerOptions{}, 0.0F, 3);
  MicroBatchLoader loader(session.device(), shape, share);
  std::string message;
  std::string before;
  for (int index = 0; index < 20 && message.empty(); ++index) {
    before = step.model().store.weights_hash();
    message = step.run(loader, index, 1e12).divergence;
  }
  EXPECT_TRUE(message.starts_with("gradients overflow at step ")) << message;
  EXPECT_EQ(step.model().store.weights_hash(), before);
  for (const std::string& other : world.all_gather(message)) EXPECT_EQ(other, message);
}

}  // namespace lockstep::virtual_ranks_test
