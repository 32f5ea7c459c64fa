// Ranks against ranks: what several ranks learn together is what one rank learns from the same micro-batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "step/all_reduce.hpp"
#include "step/micro_batch_loader.hpp"
#include "step/whole_step.hpp"
#include "support/messages.hpp"

namespace lockstep::ranks_against_ranks_test {

struct Case {
  std::string model;
  SampleShape shape;
  std::string reducer;
};

struct Outcome {
  std::vector<ParameterStore::Entry> entries;
  std::string hash;
  std::vector<double> losses;
  std::int64_t correct = 0;
  std::string plan;
};

// `steps` steps of `micro-batches` micro-batches in all, of which this rank carries its share among the ranks of
// `world`.
Outcome train(const Communicator& world, const Case& choice, int micro_batches, int steps, const std::string& plan) {
  const Session session{world, open_backend({.name = "cpu", .threads = 1})};
  const int own = micro_batches / world.size();
  const LoaderShare share{micro_batches * micro_batch_size, micro_batches, world.rank() * own, own};
  WholeStep step(session, {choice.model, choice.shape, 10}, share, {choice.reducer, 16 << 10}, OptimizerOptions{}, 0.1F,
                 3);
  if (plan.empty()) {
    step.choose_kernels({micro_batch_size});
  } else {
    session.device().ops().import_plan(plan);
  }
  MicroBatchLoader loader(session.device(), choice.shape, share);
  Outcome outcome;
  for (int index = 0; index < steps; ++index) {
    const Metrics metrics = step.run(loader, index, 0.05).metrics;
    outcome.losses.push_back(metrics.loss());
    outcome.correct += metrics.correct;
  }
  outcome.entries = step.model().store.entries();
  outcome.hash = step.model().store.weights_hash();
  outcome.plan = session.device().ops().export_plan();
  return outcome;
}

double largest_difference(const ParameterStore::Entry& a, const ParameterStore::Entry& b) {
  double difference = 0;
  double largest = 1e-30;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    difference = std::max(difference, std::abs(static_cast<double>(a.values[i]) - b.values[i]));
    largest = std::max(largest, std::abs(static_cast<double>(a.values[i])));
  }
  return difference / largest;
}

class RanksAgainstRanks : public testing::TestWithParam<Case> {
 protected:
  const Communicator world_{MPI_COMM_WORLD};
  const Communicator self_{MPI_COMM_SELF};

  // The largest difference between the weights that all ranks learn from `micro-batches` micro-batches, and those of
  // one rank alone.
  double difference_from_one_rank(int micro_batches, int steps) {
    together_ = train(world_, GetParam(), micro_batches, steps, "");
    alone_ = train(self_, {GetParam().model, GetParam().shape, "auto"}, micro_batches, steps, together_.plan);
    EXPECT_EQ(together_.correct, alone_.correct);
    EXPECT_EQ(together_.entries.size(), alone_.entries.size());
    double difference = 0;
    for (std::size_t i = 0; i < alone_.entries.size(); ++i) {
      difference = std::max(difference, largest_difference(alone_.entries[i], together_.entries[i]));
    }
    return difference;
  }

  Outcome together_;
  Outcome alone_;
};

TEST_P(RanksAgainstRanks, equal_one_rank_that_carries_the_same_parts) {
  const double difference = difference_from_one_rank(world_.size(), 3);
  EXPECT_LE(difference, world_.size() <= 2 ? 1e-6 : 1.0);
  if (GetParam().reducer != "shared") return;
  EXPECT_EQ(together_.losses, alone_.losses);
  EXPECT_EQ(together_.hash, alone_.hash);
}

// Parts of a rank are added before those of ranks, so that rounding differs; one step, because from then on a ReLU may
// open here and not there.
TEST_P(RanksAgainstRanks, equal_one_rank_closely_with_two_parts_each) {
  EXPECT_LE(difference_from_one_rank(2 * world_.size(), 1), 1e-5);
}

TEST_P(RanksAgainstRanks, hold_the_same_weights_on_every_rank) {
  const Outcome outcome = train(world_, GetParam(), world_.size(), 2, "");
  for (const std::string& hash : world_.all_gather(outcome.hash)) EXPECT_EQ(hash, outcome.hash);
}

INSTANTIATE_TEST_SUITE_P(Models, RanksAgainstRanks,
                         testing::Values(Case{"lenet", {32, 32, 3}, "shared"}, Case{"lenet", {32, 32, 3}, "mpi"},
                                         Case{"convnet", {28, 28, 1}, "shared"}, Case{"convnet", {28, 28, 1}, "mpi"},
                                         Case{"resnet20", {16, 16, 3}, "shared"}, Case{"resnet20", {16, 16, 3}, "mpi"}),
                         [](const auto& test) { return test.param.model + "_" + test.param.reducer; });

// Gives one micro-batch for ever.
class Again final : public Loader {
 public:
  explicit Again(Batch batch) : batch_(std::move(batch)) {}
  const Batch& next() override { return batch_; }
  void start_next() override { ++started; }
  double waited_ms() const override { return 0; }

  int started = 0;

 private:
  Batch batch_;
};

// The statistics behind one step in which every one of `micro-batches` micro-batches for each rank is the same.
std::vector<ParameterStore::Entry> statistics_of_equal_parts(const Communicator& world, int micro_batches) {
  const Session session{world, open_backend({.name = "cpu", .threads = 1})};
  const int all = micro_batches * world.size();
  const LoaderShare share{micro_batch_size * all, all, world.rank() * micro_batches, micro_batches};
  const SampleShape shape{16, 16, 3};
  WholeStep step(session, {"resnet20", shape, 10}, share, {"auto", 1 << 20}, OptimizerOptions{}, 0.0F, 1);
  MicroBatchLoader parts_of_rank_0(session.device(), shape, {micro_batch_size, 1, 0, 1});
  Again loader(parts_of_rank_0.next());
  step.run(loader, 0, 0.05);
  std::vector<ParameterStore::Entry> entries = step.model().store.entries();
  std::erase_if(entries, [](const auto& entry) { return entry.name.find("running_") == std::string::npos; });
  return entries;
}

TEST(TrainingStepTest, equal_parts_move_the_running_statistics_as_one_of_them_would) {
  const std::vector<ParameterStore::Entry> one = statistics_of_equal_parts(Communicator(MPI_COMM_SELF), 1);
  const std::vector<ParameterStore::Entry> many = statistics_of_equal_parts(Communicator(MPI_COMM_WORLD), 3);
  ASSERT_EQ(one.size(), 2U * 19U);
  const std::vector<float> unmoved(one[0].values.size(), 0.0F);
  EXPECT_EQ(one[0].name, "bn1.running_mean");
  EXPECT_NE(one[0].values, unmoved);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_LE(largest_difference(one[i], many[i]), 1e-5) << one[i].name;
}

TEST(TrainingStepTest, each_step_has_a_rate_of_its_own) {
  const Communicator world(MPI_COMM_WORLD);
  const Session session{world, open_backend({.name = "cpu", .threads = 1})};
  const LoaderShare share{micro_batch_size * world.size(), world.size(), world.rank(), 1};
  WholeStep step(session, {"lenet", {32, 32, 3}, 10}, share, {"auto", 1 << 20}, OptimizerOptions{}, 0.0F, 1);
  MicroBatchLoader loader(session.device(), {32, 32, 3}, share);
  step.run(loader, 0, 0.05);
  const std::string before = step.model().store.weights_hash();
  EXPECT_EQ(step.run(loader, 1, 0).learning_rate, 0);
  EXPECT_EQ(step.model().store.weights_hash(), before);
  step.run(loader, 2, 0.05);
  EXPECT_NE(step.model().store.weights_hash(), before);
}

TEST(TrainingStepTest, the_loader_is_told_to_start_on_the_part_after_each) {
  const Communicator world(MPI_COMM_WORLD);
  const Session session{world, open_backend({.name = "cpu", .threads = 1})};
  const LoaderShare share{2 * micro_batch_size * world.size(), 2 * world.size(), 2 * world.rank(), 2};
  WholeStep step(session, {"lenet", {32, 32, 3}, 10}, share, {"auto", 1 << 20}, OptimizerOptions{}, 0.0F, 1);
  MicroBatchLoader micro_batches(session.device(), {32, 32, 3}, share);
  Again loader(micro_batches.next());
  step.run(loader, 0, 0.05);
  EXPECT_EQ(loader.started, 2);
}

TEST(TrainingStepTest, gradients_travel_as_the_plan_says_or_not_at_all) {
  const Communicator world(MPI_COMM_WORLD);
  const Session session{world, open_backend({.name = "cpu", .threads = 1})};
  Model model(session.device(), {"lenet", {32, 32, 3}, 10});
  expect_error(Failure::usage, {"--wire"},
               [&] { make_all_reduce(session, model.store, {.wire = DType::bf16}, world.size()); });
}

TEST(TrainingStepTest, learns_what_it_sees_again_and_again) {
  const Communicator world(MPI_COMM_WORLD);
  const Session session{world, open_backend({.name = "cpu", .threads = 1})};
  const LoaderShare share{micro_batch_size * world.size(), world.size(), world.rank(), 1};
  WholeStep step(session, {"lenet", {32, 32, 3}, 10}, share, {"auto", 1 << 20}, OptimizerOptions{}, 0.0F, 1);
  MicroBatchLoader fresh(session.device(), {32, 32, 3}, share);
  Again loader(fresh.next());
  const double first = step.run(loader, 0, 0.05).metrics.loss();
  double last = first;
  for (int index = 1; index < 60; ++index) last = step.run(loader, index, 0.05).metrics.loss();
  EXPECT_NEAR(first, std::log(10.0), 0.2);
  EXPECT_LT(last, first / 2);
}

TEST(TrainingStepTest, a_diverged_loss_is_told_on_every_rank_before_the_weights_change) {
  const Communicator world(MPI_COMM_WORLD);
  const Session session{world, open_backend({.name = "cpu", .threads = 1})};
  const LoaderShare share{micro_batch_size * world.size(), world.size(), world.rank(), 1};
  WholeStep step(session, {"lenet", {32, 32, 3}, 10}, share, {"auto", 1 << 20}, OptimizerOptions{}, 0.0F, 1);
  MicroBatchLoader loader(session.device(), {32, 32, 3}, share);
  std::string message;
  std::string before;
  for (int index = 0; index < 20 && message.empty(); ++index) {
    before = step.model().store.weights_hash();
    message = step.run(loader, index, 1e12).divergence;
  }
  EXPECT_TRUE(message.starts_with("loss is nan at step ") || message.starts_with("loss is inf at step ")) << message;
  EXPECT_TRUE(message.ends_with(" (learning rate 1e+12). Lower --lr or lengthen the warm-up.")) << message;
  EXPECT_EQ(step.model().store.weights_hash(), before);
  for (const std::string& other : world.all_gather(message)) EXPECT_EQ(other, message);
}

}  // namespace lockstep::ranks_against_ranks_test
