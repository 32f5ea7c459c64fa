#include "comm/all_reducer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "comm/reducer_cases.hpp"
#include "support/messages.hpp"

namespace lockstep::all_reducer_test {

class AllReducerTest : public testing::TestWithParam<ReducerCase> {
 protected:
  // Every element of every rank: the sum over ranks, within rounding or to the bit, and the same bits everywhere.
  void expect_sums(const Tensor& values, std::int64_t first, std::int64_t count, std::int64_t step) const {
    const int ranks = world_.size();
    std::uint64_t hash = 0;
    int wrong = 0;
    for (std::int64_t i = first; i < first + count; ++i) {
      const float got = values.as<float>()[i];
      const float expected = sum_in_rank_order(ranks, step, i);
      // Two ranks have one order. The terms are below 2^15, each addition is rounded to 24 bits.
      const float tolerance = ranks <= 2 || GetParam().sums_in_rank_order ? 0.0F : 0x1p-7F;
      if (!(std::abs(got - expected) <= tolerance)) ++wrong;
      hash = hash * 31 + std::bit_cast<std::uint32_t>(got);
    }
    EXPECT_EQ(wrong, 0) << "of " << count << " sums";
    const std::vector<std::string> hashes = world_.all_gather(std::to_string(hash));
    EXPECT_EQ(hashes, std::vector<std::string>(hashes.size(), hashes.front())) << "ranks disagree";
  }

  void fill(const Tensor& values, std::int64_t step) const {
    for (std::int64_t i = 0; i < values.shape()[0]; ++i) values.as<float>()[i] = value_of(world_.rank(), step, i);
  }

  Communicator world_ = world();
};

TEST_P(AllReducerTest, starts_from_zeros) {
  const auto reducer = GetParam().make(bytes_of(1000));
  const Tensor values = reducer->allocate(1000);
  EXPECT_EQ(values.shape(), Shape{1000});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(values.data()) % Arena::alignment, 0U);
  for (std::int64_t i = 0; i < 1000; ++i) ASSERT_EQ(values.as<float>()[i], 0.0F);
}

TEST_P(AllReducerTest, sums_slices_of_any_size_anywhere) {
  constexpr std::int64_t count = 50'021;
  const auto reducer = GetParam().make(bytes_of(count));
  const Tensor values = reducer->allocate(count);
  const std::vector<std::pair<std::int64_t, std::int64_t>> slices = {
      {0, 1}, {1, 15}, {16, 16}, {33, 4097}, {5000, 0}, {6001, 44'019}};  // first, count; 32 and others stay
  for (const auto& [first, length] : slices) {
    fill(values, 0);
    reducer->start_sum(values.slice(first, length));
    reducer->wait();
    expect_sums(values, first, length, 0);
    for (std::int64_t i = 0; i < count; ++i) {
      if (i >= first && i < first + length) continue;
      ASSERT_EQ(values.as<float>()[i], value_of(world_.rank(), 0, i)) << "outside the slice, at " << i;
    }
  }
}

TEST_P(AllReducerTest, keeps_many_slices_under_way_step_after_step) {
  constexpr std::int64_t slices = 40;
  constexpr std::int64_t slice = 1'003;
  const auto reducer = GetParam().make(bytes_of(slices * slice));
  const Tensor values = reducer->allocate(slices * slice);
  for (std::int64_t step = 0; step < 20; ++step) {
    fill(values, step);
    for (std::int64_t i = 0; i < slices; ++i) {
      reducer->start_sum(values.slice(i * slice, slice));
      // Ranks are out of step with each other, another one each time.
      if ((step + i) % 13 == world_.rank()) std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    reducer->wait();
    expect_sums(values, 0, slices * slice, step);
  }
}

TEST_P(AllReducerTest, sums_arrays_of_many_pieces) {
  constexpr std::int64_t count = 600'001;
  const auto reducer = GetParam().make(bytes_of(count));
  const Tensor values = reducer->allocate(count);
  fill(values, 7);
  reducer->start_sum(values);
  reducer->wait();
  expect_sums(values, 0, count, 7);
}

TEST_P(AllReducerTest, sums_whole_numbers_exactly) {
  constexpr std::int64_t count = 30'001;
  const auto reducer = GetParam().make(count * size_of(DType::i64));
  const Tensor values = reducer->allocate(count, DType::i64);
  EXPECT_EQ(values.dtype(), DType::i64);
  const auto number = [](int rank, std::int64_t i) {
    return (std::int64_t{1} << 55) * (rank % 2 == 0 ? 1 : -1) + i * (rank + 1);
  };
  for (std::int64_t i = 0; i < count; ++i) values.as<std::int64_t>()[i] = number(world_.rank(), i);
  reducer->start_sum(values.slice(0, 17));
  reducer->start_sum(values.slice(17, count - 17));
  reducer->wait();
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t expected = 0;
    for (int rank = 0; rank < world_.size(); ++rank) expected += number(rank, i);
    ASSERT_EQ(values.as<std::int64_t>()[i], expected) << i;
  }
}

TEST_P(AllReducerTest, waiting_for_nothing_returns) {
  const auto reducer = GetParam().make(bytes_of(16));
  reducer->wait();
  reducer->start_sum(reducer->allocate(16));
  reducer->wait();
  reducer->wait();
}

INSTANTIATE_TEST_SUITE_P(All, AllReducerTest, testing::ValuesIn(reducer_cases()),
                         [](const testing::TestParamInfo<ReducerCase>& one) { return one.param.name; });

std::string plural(int ranks) { return std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks"); }

TEST(AllReducers, say_what_they_are) {
  const int ranks = world().size();
  EXPECT_EQ(make_cpu_all_reducer("mpi", world(), 4)->description(), "mpi (" + plural(ranks) + ")");
  EXPECT_EQ(make_cpu_all_reducer("shared", world(), 4)->description(), "shared memory (" + plural(ranks) + ")");
  EXPECT_EQ(make_cpu_all_reducer("auto", world(), 4)->description(),
            (ranks == 1 ? "mpi (" : "shared memory (") + plural(ranks) + ")");
  if (ranks < 3) return;
  expect_message(over_nodes([](int rank) { return rank / 2; }, 4)->description(), {plural(ranks)});
}

// More than any machine has, and little enough that the whole of a node's ranks is still a number of bytes.
constexpr std::int64_t too_many_bytes = std::int64_t{1} << 56;

TEST(AllReducers, auto_falls_back_to_mpi_with_one_warning) {
  if (world().size() == 1) GTEST_SKIP() << "one rank shares memory with nobody";
  testing::internal::CaptureStderr();
  const auto reducer = make_cpu_all_reducer("auto", world(), too_many_bytes);
  const std::string message = testing::internal::GetCapturedStderr();
  EXPECT_EQ(reducer->description(), "mpi (" + plural(world().size()) + ")");
  const std::string warning = " " + std::to_string(world().size() * (too_many_bytes + 4288)) + " bytes ";
  EXPECT_EQ(message.find(warning) != std::string::npos, world().rank() == 0) << message;
  EXPECT_EQ(message.empty(), world().rank() != 0) << message;
}

TEST(AllReducers, shared_says_what_is_missing) {
  try {
    make_cpu_all_reducer("shared", world(), too_many_bytes);
    FAIL() << "there is not that much memory";
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), Failure::out_of_memory);
    expect_message(error.what(), {"--reduce"});
  }
}

TEST(AllReducers, refuse_an_unknown_name) {
  try {
    make_cpu_all_reducer("ring", world(), 4);
    FAIL() << "no reducer is called ring";
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), Failure::usage);
    expect_message(error.what(), {"'ring'", "--reduce"});
  }
}

}  // namespace lockstep::all_reducer_test
