// lib's reducers on simulated GPUs, one for each rank: the bits of sums in the order of the ranks, however their work
// is ordered.
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "comm/reducer_cases.hpp"
#include "device/host_device.hpp"
#include "support/simulated_gpu/gpu.hpp"

namespace lockstep {
namespace {

using simulated::Order;

constexpr std::size_t memory_bytes = (std::size_t{4} << 30) + (std::size_t{16} << 20);  // lib leaves 4 GiB

// Both add in the order of the ranks.
struct Case {
  std::string reducer;
  Order order;
};

class SimulatedReducerTest : public testing::TestWithParam<Case> {
 protected:
  SimulatedReducerTest() {
    simulated::reset({.order = GetParam().order,
                      .seed = static_cast<std::uint64_t>(world_.rank()),
                      .devices = ranks(),
                      .memory_bytes = memory_bytes});
    const std::vector<std::string> gpus = visible_gpus();
    backend_ = open_backend({.name = "cuda",
                             .local_rank = world_.rank(),
                             .local_size = ranks(),
                             .local_gpus = {static_cast<std::size_t>(ranks()), gpus}});
  }

  int ranks() const { return world_.size(); }
  Device& device() { return backend_->device(); }
  std::unique_ptr<AllReducer> make(std::int64_t count, DType wire = DType::f32) {
    return backend_->make_reducer(GetParam().reducer, world_, bytes_of(count), wire);
  }

  void fill(const Tensor& values, std::int64_t step) {
    std::vector<float> numbers(static_cast<std::size_t>(values.shape().count()));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = value_of(world_.rank(), step, static_cast<std::int64_t>(i));
    }
    device().write(numbers, values);
  }
  std::vector<float> read(const Tensor& values) {
    std::vector<float> numbers(static_cast<std::size_t>(values.shape().count()));
    device().read(values, numbers);
    return numbers;
  }
  // Of elements first to first + count of what fill() wrote.
  std::vector<float> sums(std::int64_t first, std::int64_t count, std::int64_t step) const {
    std::vector<float> numbers;
    for (std::int64_t i = first; i < first + count; ++i) numbers.push_back(sum_in_rank_order(ranks(), step, i));
    return numbers;
  }

  const Communicator world_ = world();
  std::unique_ptr<Backend> backend_;
};

TEST_P(SimulatedReducerTest, sums_slices_step_after_step) {
  constexpr std::int64_t count = 1000;
  const auto reducer = make(count);
  const Tensor values = reducer->allocate(count);
  for (std::int64_t step = 0; step < 4; ++step) {
    fill(values, step);
    for (const std::int64_t first : {0, 300, 700}) reducer->start_sum(values.slice(first, 250));
    reducer->wait();
    const std::vector<float> got = read(values);
    for (const std::int64_t first : {0, 300, 700}) {
      EXPECT_EQ(std::vector(got.begin() + first, got.begin() + first + 250), sums(first, 250, step));
    }
    EXPECT_EQ(got[299], value_of(world_.rank(), step, 299)) << "outside the slices";
  }
}

TEST_P(SimulatedReducerTest, scatters_sums_and_gathers_them_again) {
  for (const std::int64_t count : {5, 16, 100, 4097}) {
    const auto reducer = make(2 * count);
    const Tensor values = reducer->allocate(count);
    const Tensor weights = reducer->allocate(count);
    fill(values, 0);
    reducer->start_reduce_scatter(values);
    reducer->wait();
    const SlicePart own = reducer->part_of(values, world_.rank());
    if (own.count > 0) {
      const std::vector<float> part = read(values.slice(own.first, own.count));
      EXPECT_EQ(part, sums(own.first, own.count, 0));
      device().write(part, weights.slice(own.first, own.count));
    }
    reducer->start_all_gather(weights);
    reducer->wait();
    EXPECT_EQ(read(weights), sums(0, count, 0)) << count;
  }
}

// What only NCCL does.
class SimulatedNcclReducerTest : public SimulatedReducerTest {};

// Each run of the step multiplies the values by the number of ranks. From the third one on, it is replayed.
TEST_P(SimulatedNcclReducerTest, a_captured_sum_is_replayed) {
  const auto reducer = make(64);
  const Tensor values = reducer->allocate(64);
  const auto graph = device().make_captured_graph();
  device().write(std::vector<float>(64, 1), values);
  float expected = 1;
  for (int run = 0; run < 5; ++run) {
    graph->run([&] {
      for (const std::int64_t first : {0, 32}) reducer->start_sum(values.slice(first, 32));
      reducer->wait();
    });
    expected *= static_cast<float>(ranks());
    EXPECT_EQ(read(values), std::vector<float>(64, expected)) << "run " << run;
  }
}

TEST_P(SimulatedNcclReducerTest, rounded_sums_travel_in_bf16) {
  const auto reducer = make(64, DType::bf16);
  const Tensor values = reducer->allocate(64);
  fill(values, 1);
  reducer->start_rounded_sum(values);
  reducer->wait();
  const std::vector<float> got = read(values);
  for (std::int64_t i = 0; i < 64; ++i) {
    std::uint16_t sum = to_bf16(value_of(0, 1, i));
    for (int rank = 1; rank < ranks(); ++rank) {
      sum = to_bf16(from_bf16(sum) + from_bf16(to_bf16(value_of(rank, 1, i))));
    }
    EXPECT_EQ(got[static_cast<std::size_t>(i)], from_bf16(sum)) << i;
  }
}

TEST_P(SimulatedNcclReducerTest, a_graph_that_outlives_its_communicator_is_found) {
  if (ranks() > 1) GTEST_SKIP() << "dies in a process of its own";
  for (const bool throws : {false, true}) {
    const auto outlive = [&] {
      const auto graph = device().make_captured_graph();
      try {
        const auto reducer = make(64);
        const Tensor values = reducer->allocate(64);
        for (int run = 0; run < 2; ++run) {
          graph->run([&] {
            reducer->start_sum(values);
            reducer->wait();
          });
        }
        if (throws) throw std::runtime_error("no");
      } catch (const std::runtime_error&) {
      }
    };
    EXPECT_EXIT(
        outlive(), testing::KilledBySignal(SIGABRT),
        std::string(throws ? "ncclCommAbort" : "ncclCommFinalize") + " waits forever, because a captured graph");
  }
}

std::vector<Case> cases(const std::vector<std::string>& reducers) {
  std::vector<Case> all;
  for (const std::string& reducer : reducers) {
    for (const Order order : {Order::direct, Order::late, Order::early, Order::random}) all.push_back({reducer, order});
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<Case>& test) {
  constexpr std::array orders{"direct", "late", "early", "random"};
  return test.param.reducer + "_" + orders.at(static_cast<std::size_t>(test.param.order));
}

INSTANTIATE_TEST_SUITE_P(, SimulatedReducerTest, testing::ValuesIn(cases({"nccl", "shared"})), name_of);
INSTANTIATE_TEST_SUITE_P(, SimulatedNcclReducerTest, testing::ValuesIn(cases({"nccl"})), name_of);

}  // namespace
}  // namespace lockstep
