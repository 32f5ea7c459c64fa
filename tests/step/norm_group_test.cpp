// Batch norms over several ranks: what ranks learn together is what one rank learns from the whole batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <ranges>
#include <string>
#include <vector>

#include "backend/cpu_backend.hpp"
#include "models/golden_file.hpp"
#include "models/net_values.hpp"
#include "models/test_net.hpp"
#include "network/build.hpp"
#include "nn/fused_network.hpp"
#include "step/micro_batch_loader.hpp"
#include "step/rank_norm_group.hpp"
#include "step/whole_step.hpp"
#include "support/device/hosted_cuda_device.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"

namespace lockstep::test::norm_group_test {

using Bytes = std::string;

// Adds up each rank's values.
Values sum_over(const Communicator& world, const Values& values) {
  Values sum(values.size());
  for (const Bytes& bytes : world.all_gather(Bytes(reinterpret_cast<const char*>(values.data()), values.size() * 8))) {
    Values other(values.size());
    std::memcpy(other.data(), bytes.data(), bytes.size());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
  }
  return sum;
}

// This rank's share of rows, which all ranks have alike.
std::vector<float> share_of(const Values& rows, const Communicator& world) {
  const std::size_t own = rows.size() / static_cast<std::size_t>(world.size());
  const auto first = rows.begin() + static_cast<std::ptrdiff_t>(own) * world.rank();
  return {first, first + static_cast<std::ptrdiff_t>(own)};
}

TEST(NormGroupTest, ranks_that_share_a_batch_agree_with_pytorch_on_the_whole_of_it) {
  const Communicator world(MPI_COMM_WORLD);
  SyncBatchNormGroup group(world, world.size());
  const GoldenFile golden(golden_path("resnet20"));
  TestNet net(ModelOptions{"resnet20", {32, 32, 3}, 10});
  std::vector<ParameterStore::Entry> entries = net.store.entries();
  for (ParameterStore::Entry& entry : entries) {
    if (entry.name.find("running_") != std::string::npos) continue;
    const Values values = golden.values("weights/" + entry.name);
    entry.values.assign(values.begin(), values.end());
  }
  net.store.assign(entries);

  const std::vector<std::int64_t> dims = golden.dims("images");
  const Shape share{dims[0] / world.size(), dims[1], dims[2], dims[3]};
  const Tensor images = make_images(*net.device, share, share_of(golden.values("images"), world));
  const Tensor labels = make_labels(*net.device, share_of(golden.values("labels"), world));
  net.statistics = {1.0F / static_cast<float>(world.size()), Accumulate::overwrite, &group};
  RecordingSink sink;
  const Tensor logits = net.pass(images, labels, sink);

  const std::vector<float> expected = share_of(golden.values("logits"), world);
  EXPECT_LE(largest_error(doubles(read(*net.device, logits)), doubles(expected)), 1e-4);
  // A ReLU gate that flips in fp32 moves single gradients by more than this, and the whole of them by less.
  for (const auto& [name, values] : gradients(net)) {
    EXPECT_LE(compare({{"", sum_over(world, values)}}, {{"", golden.values("gradients/" + name)}}).relative_l2, 2e-2)
        << name;
  }
  // From 0 or 1 a tenth of the way to the batch's.
  for (const Statistic& statistic : net.store.statistics()) {
    Values moved = sum_over(world, doubles(read(*net.device, statistic.batch)));
    moved.resize(static_cast<std::size_t>(statistic.channels));
    for (double& value : moved) value = 0.9 * statistic.initial + 0.1 * value;
    EXPECT_LE(largest_error(moved, golden.values("running/" + statistic.name)), 1e-4) << statistic.name;
  }
}

TEST(NormGroupTest, one_value_per_channel_and_rank_is_enough_for_ranks_that_share_a_norm) {
  const Communicator world(MPI_COMM_WORLD);
  SyncBatchNormGroup group(world, world.size());
  const auto device = open_test_device();
  ParameterStore store(*device);
  const StatisticsShare statistics{.group = &group};
  NetworkGraph graph({1, 1, 3});
  build::batch_norm(build::conv(build::input(graph), "conv", {.out = 6, .kernel = 3, .padding = 1}), "norm");
  FusedNetwork unit(graph, {*device, store, statistics});
  store.allocate(device->make_persistent(store.gradient_buffer_count(), DType::f32));
  const Tensor image = make_images(*device, {1, 1, 1, 3}, std::vector<float>{1, 2, 3});
  const std::string message = message_of(Failure::usage, [&] { unit.forward(image, Mode::train); });
  EXPECT_THAT(message, ::testing::HasSubstr(world.size() == 1 ? "'norm.weight'" : "no error"));
}

// All micro-batches of a step as one.
class WholeBatchLoader final : public Loader {
 public:
  WholeBatchLoader(Device& device, const SampleShape& shape, int micro_batches)
      : device_(device),
        parts_(micro_batches),
        loader_(device, shape, {micro_batch_size * micro_batches, micro_batches, 0, micro_batches}),
        batch_{device.make({micro_batch_size * micro_batches, shape.height, shape.width, shape.channels}, DType::f32,
                           Layout::images),
               device.make({micro_batch_size * micro_batches}, DType::i32, Layout::plain),
               micro_batch_size * micro_batches} {}

  const Batch& next() override {
    std::vector<float> images;
    std::vector<float> labels;
    for (int micro_batch = 0; micro_batch < parts_; ++micro_batch) {
      const Batch& one = loader_.next();
      for (const float value : read(device_, one.images)) images.push_back(value);
      for (const float value : read(device_, one.labels)) labels.push_back(value);
    }
    device_.write(images, batch_.images);
    device_.write(labels, batch_.labels);
    return batch_;
  }
  double waited_ms() const override { return 0; }

 private:
  Device& device_;
  int parts_;
  MicroBatchLoader loader_;
  Batch batch_;
};

struct Case {
  std::string model;
  SampleShape shape;
  double error;  // a ReLU may open here and not there
};

struct Members {
  Members(const Session& session, const Case& choice, const LoaderShare& share, const AllReduceOptions& reduce)
      : model(session.device(), {choice.model, choice.shape, 10}),
        sync(make_weight_sync(session, model.store, {reduce, {}, {}}, share.total_micro_batches)) {
    initialize(model.store, 3);
  }
  Model model;
  std::unique_ptr<WeightSync> sync;
};

// The weights and statistics after `steps` steps of a micro-batch for each rank, whose norms are taken `group_size` at
// a time.
std::vector<ParameterStore::Entry> train(const Case& choice, int group_size, const AllReduceOptions& reduce,
                                         int threads, int steps) {
  const Communicator world(MPI_COMM_WORLD);
  const Session session{world, open_backend({.name = "cpu", .threads = threads})};
  const LoaderShare share{micro_batch_size * world.size(), world.size(), world.rank(), 1};
  Members members(session, choice, share, reduce);
  SyncBatchNormGroup group(world, group_size);
  TrainingStep step(session, members.model, *members.sync, share, 0.1F, &group);
  MicroBatchLoader loader(session.device(), choice.shape, share);
  for (int index = 0; index < steps; ++index) step.run(loader, index, 0.05);
  return members.model.store.entries();
}

std::vector<ParameterStore::Entry> train_alone(const Case& choice, int steps) {
  const Communicator self(MPI_COMM_SELF);
  const int micro_batches = Communicator(MPI_COMM_WORLD).size();
  const Session session{self, open_backend({.name = "cpu", .threads = 1})};
  const LoaderShare share{micro_batch_size * micro_batches, 1, 0, 1};
  Members members(session, choice, share, {});
  TrainingStep step(session, members.model, *members.sync, share, 0.1F);
  WholeBatchLoader loader(session.device(), choice.shape, micro_batches);
  for (int index = 0; index < steps; ++index) step.run(loader, index, 0.05);
  return members.model.store.entries();
}

class NormGroupsTest : public ::testing::TestWithParam<Case> {};

TEST_P(NormGroupsTest, ranks_learn_what_one_rank_learns_from_the_whole_batch) {
  const Communicator world(MPI_COMM_WORLD);
  const auto together = train(GetParam(), world.size(), {}, 1, 1);
  const auto alone = train_alone(GetParam(), 1);
  ASSERT_EQ(together.size(), alone.size());
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_LE(largest_error(doubles(together[i].values), doubles(alone[i].values)), GetParam().error) << alone[i].name;
  }
}

TEST_P(NormGroupsTest, bits_depend_neither_on_threads_nor_on_the_way_sums_take) {
  const Communicator world(MPI_COMM_WORLD);
  const AllReduceOptions shared{.reducer = "shared", .sums = Sums::reproducible};
  const AllReduceOptions mpi{.reducer = "mpi", .sums = Sums::reproducible};
  const std::string hash = weights_hash(train(GetParam(), world.size(), shared, 1, 3));
  EXPECT_EQ(weights_hash(train(GetParam(), world.size(), mpi, 3, 3)), hash);
  for (const std::string& other : world.all_gather(hash)) EXPECT_EQ(other, hash);
}

TEST_P(NormGroupsTest, another_group_learns_something_else) {
  const Communicator world(MPI_COMM_WORLD);
  if (world.size() == 1) GTEST_SKIP() << "one rank has one group";
  EXPECT_NE(weights_hash(train(GetParam(), world.size(), {}, 1, 1)), weights_hash(train(GetParam(), 1, {}, 1, 1)));
}

INSTANTIATE_TEST_SUITE_P(Models, NormGroupsTest,
                         ::testing::Values(Case{"convnet", {28, 28, 1}, 1e-4}, Case{"resnet20", {16, 16, 3}, 5e-3}),
                         [](const auto& test) { return test.param.model; });

TEST(NormGroupTest, a_group_is_made_of_neighbours_as_the_recipe_says) {
  const Communicator world(MPI_COMM_WORLD);
  const Session session{world, open_backend({.name = "cpu", .threads = 1})};
  const LoaderShare share{micro_batch_size * world.size(), world.size(), world.rank(), 1};
  const Model model(session.device(), {"convnet", {28, 28, 1}, 10});
  Recipe recipe;
  EXPECT_EQ(make_norm_group(session, recipe, share, model.store), nullptr);
  recipe.sync_batch_norm_ranks = 0;
  const std::unique_ptr<NormGroup> all = make_norm_group(session, recipe, share, model.store);
  EXPECT_EQ(all == nullptr, world.size() == 1);
  if (world.size() != 4) return;
  recipe.sync_batch_norm_ranks = 2;
  const std::unique_ptr<NormGroup> pair = make_norm_group(session, recipe, share, model.store);
  std::vector<double> ranks(2);
  const auto own = static_cast<double>(world.rank());
  pair->all_gather({&own, 1}, ranks);
  const int first = world.rank() / 2 * 2;
  EXPECT_EQ(ranks, (std::vector<double>{static_cast<double>(first), static_cast<double>(first + 1)}));
}

TEST(NormGroupTest, a_model_without_norms_has_none_to_share) {
  const Communicator world(MPI_COMM_WORLD);
  if (world.size() == 1) GTEST_SKIP() << "one rank has nobody to share with";
  const Session session{world, open_backend({.name = "cpu", .threads = 1})};
  const LoaderShare share{micro_batch_size * world.size(), world.size(), world.rank(), 1};
  const Model model(session.device(), {"lenet", {32, 32, 3}, 10});
  Recipe recipe;
  recipe.model = "lenet";
  recipe.sync_batch_norm_ranks = 0;
  expect_error(Failure::usage, {"--sync-batch-norm", "lenet"},
               [&] { make_norm_group(session, recipe, share, model.store); });
}

TEST(NormGroupTest, norms_of_a_gpu_have_no_group) {
  const Communicator world(MPI_COMM_WORLD);
  if (world.size() == 1) GTEST_SKIP() << "one rank has nobody to share with";
  const Session session{world, std::make_unique<CpuBackend>(open_hosted_cuda_device({}))};
  const LoaderShare share{micro_batch_size * world.size(), world.size(), world.rank(), 1};
  const Model model(session.device(), {"convnet", {28, 28, 1}, 10});
  Recipe recipe;
  recipe.sync_batch_norm_ranks = 0;
  expect_error(Failure::usage, {"--sync-batch-norm"}, [&] { make_norm_group(session, recipe, share, model.store); });
}

}  // namespace lockstep::test::norm_group_test
