// Sums on servers have the bits of sums in the order of trainers, and reach whom they should reach.
#include "comm/server_all_reducer.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <vector>

#include "comm/reducer_cases.hpp"
#include "support/messages.hpp"

namespace lockstep::server_all_reducer_test {

constexpr std::int64_t sizes[] = {1, 15, 16, 17, 100, 4097, 70'001};

class ServerAllReducerTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (servers_ >= world_.size()) GTEST_SKIP() << "no rank is left to train";
    reducer_ = make_server_all_reducer(world_, servers_);
  }
  bool is_server() const { return world_.rank() >= trainers_; }
  void fill(const Tensor& values, std::int64_t step) const {
    for (std::int64_t i = 0; i < values.shape()[0]; ++i) values.as<float>()[i] = value_of(world_.rank(), step, i);
  }
  // How many values differ from the sum of the first `ranks` ranks' ones.
  static int wrong_in(const Tensor& values, const SlicePart& part, int ranks, std::int64_t step, std::int64_t from) {
    int wrong = 0;
    for (std::int64_t i = part.first; i < part.first + part.count; ++i) {
      const float expected = sum_in_rank_order(ranks, step, from + i);
      wrong += std::bit_cast<std::uint32_t>(values.as<float>()[i]) == std::bit_cast<std::uint32_t>(expected) ? 0 : 1;
    }
    return wrong;
  }

  Communicator world_ = world();
  int servers_ = GetParam();
  int trainers_ = trainers_of(world_.size(), servers_);
  std::unique_ptr<AllReducer> reducer_;
};

TEST_P(ServerAllReducerTest, servers_own_all_parts_and_trainers_none) {
  for (const std::int64_t count : sizes) {
    const Tensor values = reducer_->allocate(count);
    std::int64_t end = 0;
    for (int rank = 0; rank < world_.size(); ++rank) {
      const SlicePart part = reducer_->part_of(values, rank);
      if (rank < trainers_ || part.count == 0) {
        EXPECT_EQ(part.count, 0);
        continue;
      }
      EXPECT_EQ(part.first, end);
      end += part.count;
    }
    EXPECT_EQ(end, count);
  }
}

// Several slices at once, as the buckets of a step.
TEST_P(ServerAllReducerTest, a_reduce_scatter_adds_the_trainers_values_and_a_gather_brings_them_to_all) {
  constexpr std::int64_t count = 70'001;
  const Tensor values = reducer_->allocate(count);
  const std::vector<std::int64_t> bounds{0, 16, 4'000, 4'016, count};
  for (std::int64_t step = 0; step < 3; ++step) {
    fill(values, step);
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      reducer_->start_rounded_reduce_scatter(values.slice(bounds[i], bounds[i + 1] - bounds[i]));
    }
    reducer_->wait();
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      const Tensor slice = values.slice(bounds[i], bounds[i + 1] - bounds[i]);
      EXPECT_EQ(wrong_in(slice, reducer_->part_of(slice, world_.rank()), trainers_, step, bounds[i]), 0);
      reducer_->start_all_gather(slice);
    }
    reducer_->wait();
    EXPECT_EQ(wrong_in(values, {0, count}, trainers_, step, 0), 0);
  }
}

TEST_P(ServerAllReducerTest, a_rounded_sum_is_of_trainers_and_another_of_all_ranks) {
  for (const std::int64_t count : sizes) {
    const Tensor values = reducer_->allocate(count);
    fill(values, 1);
    reducer_->start_rounded_sum(values);
    reducer_->wait();
    EXPECT_EQ(wrong_in(values, {0, count}, trainers_, 1, 0), 0) << count;
    fill(values, 2);
    reducer_->start_sum(values);
    reducer_->wait();
    EXPECT_EQ(wrong_in(values, {0, count}, world_.size(), 2, 0), 0) << count;
  }
}

TEST_P(ServerAllReducerTest, adds_whole_numbers_and_different_kinds_of_slices_in_one_go) {
  constexpr std::int64_t count = 1'000;
  const Tensor whole = reducer_->allocate(count, DType::i64);
  const Tensor values = reducer_->allocate(count);
  for (std::int64_t i = 0; i < count; ++i) whole.as<std::int64_t>()[i] = (std::int64_t{1} << 53) + world_.rank() + i;
  fill(values, 5);
  reducer_->start_sum(whole);
  reducer_->start_rounded_sum(values);
  reducer_->wait();
  const std::int64_t ranks = world_.size();
  for (std::int64_t i = 0; i < count; ++i) {
    ASSERT_EQ(whole.as<std::int64_t>()[i], ranks * ((std::int64_t{1} << 53) + i) + ranks * (ranks - 1) / 2);
  }
  EXPECT_EQ(wrong_in(values, {0, count}, trainers_, 5, 0), 0);
}

TEST(TrainersTest, a_world_of_servers_alone_is_refused) {
  EXPECT_EQ(require_trainers(3, 2), 1);
  expect_error(Failure::usage, {"2 ranks", "2 servers", "--servers"}, [] { require_trainers(2, 2); });
  expect_error(Failure::usage, {"1 rank", "3 servers", "--servers"}, [] { require_trainers(1, 3); });
}

INSTANTIATE_TEST_SUITE_P(, ServerAllReducerTest, testing::Values(1, 2, 3),
                         [](const auto& test) { return std::to_string(test.param) + "_servers"; });

}  // namespace lockstep::server_all_reducer_test
