// The simulated NCCL: what its operations compute, in which orders they run, and what it refuses.
#include <gmock/gmock.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "device/host_device.hpp"
#include "support/simulated_gpu/simulated_ranks.hpp"

namespace lockstep::simulated {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::array all_orders{Order::direct, Order::late, Order::early, Order::random};

// Three ranks whose sums depend on the order: (1e8 + 1) - 1e8 is 0 in fp32, and (1 + 2^-8) + 2^-8 is 1 in bf16.
TEST_F(SimulatedNcclTest, ranks_add_in_their_order_in_the_type_of_the_elements) {
  on_ranks(3, {}, [&](int rank) {
    float* const floats = device_values<float>({std::array{1e8F, 1.0F, -1e8F}.at(static_cast<std::size_t>(rank)), 2});
    const float small = rank == 0 ? 1.0F : 0x1p-8F;
    auto* const halves = device_values<std::uint16_t>({to_bf16(small)});
    auto* const integers = device_values<std::int64_t>({(std::int64_t{1} << 60) + rank});
    EXPECT_EQ(sum(floats, 2), ncclSuccess);
    EXPECT_EQ(complete(ncclAllReduce(halves, halves, 1, ncclBfloat16, ncclSum, communicator_, main_)), ncclSuccess);
    EXPECT_EQ(complete(ncclAllReduce(integers, integers, 1, ncclInt64, ncclSum, communicator_, main_)), ncclSuccess);
    EXPECT_THAT(values_of(floats, 2), ElementsAre(0, 6));
    EXPECT_THAT(values_of(halves, 1), ElementsAre(to_bf16(1)));
    EXPECT_THAT(values_of(integers, 1), ElementsAre((std::int64_t{3} << 60) + 3));
    EXPECT_EQ(leave(), ncclSuccess);
  });
}

// In place, as lib calls them, and in one group.
TEST_F(SimulatedNcclTest, shares_and_rests_go_to_their_ranks) {
  on_ranks(2, {.order = Order::random, .seed = 5}, [&](int rank) {
    const float own = rank == 0 ? 1.0F : 10.0F;
    float* const values = device_values<float>({own, 2 * own, 3 * own, 4 * own, 5 * own});
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclReduceScatter(values, values + 2 * rank, 2, ncclFloat32, ncclSum, communicator_, main_), ncclSuccess);
    EXPECT_EQ(ncclReduce(values + 4, values + 4, 1, ncclFloat32, ncclSum, 1, communicator_, main_), ncclSuccess);
    EXPECT_EQ(complete(ncclGroupEnd()), ncclSuccess);
    EXPECT_THAT(values_of(values, 5), rank == 0 ? ElementsAre(11, 22, 3, 4, 5) : ElementsAre(10, 20, 33, 44, 55));
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclAllGather(values + 2 * rank, values, 2, ncclFloat32, communicator_, main_), ncclSuccess);
    EXPECT_EQ(ncclBroadcast(values + 4, values + 4, 1, ncclFloat32, 1, communicator_, main_), ncclSuccess);
    EXPECT_EQ(complete(ncclGroupEnd()), ncclSuccess);
    EXPECT_THAT(values_of(values, 5), ElementsAre(11, 22, 33, 44, 55));
    EXPECT_EQ(leave(), ncclSuccess);
  });
}

TEST_F(SimulatedNcclTest, a_sum_runs_behind_and_before_the_work_of_its_stream) {
  for (const Order order : all_orders) {
    on_ranks(2, {.order = order}, [&](int) {
      float* const values = device_values<float>({0});
      for (int step = 1; step <= 9; ++step) {  // more than the exchange has slots
        EXPECT_EQ(launch(main_, [=] { *values += 1; }), cudaSuccess);
        EXPECT_EQ(sum(values, 1), ncclSuccess);
      }
      EXPECT_THAT(values_of(values, 1), ElementsAre(1022));
      EXPECT_EQ(leave(), ncclSuccess);
    });
  }
}

TEST_F(SimulatedNcclTest, a_captured_sum_runs_at_each_launch) {
  for (const Order order : all_orders) {
    on_ranks(2, {.order = order}, [&](int rank) {
      float* const values = device_values<float>({rank == 0 ? 1.0F : 2.0F});
      EXPECT_EQ(cudaStreamBeginCapture(main_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
      EXPECT_EQ(sum(values, 1), ncclSuccess);
      cudaGraph_t graph = nullptr;
      EXPECT_EQ(cudaStreamEndCapture(main_, &graph), cudaSuccess);
      EXPECT_THAT(values_of(values, 1), ElementsAre(rank + 1));
      cudaGraphExec_t ready = nullptr;
      EXPECT_EQ(cudaGraphInstantiate(&ready, graph, 0), cudaSuccess);
      EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
      for (int launches = 0; launches < 3; ++launches) EXPECT_EQ(cudaGraphLaunch(ready, main_), cudaSuccess);
      EXPECT_EQ(cudaGraphExecDestroy(ready), cudaSuccess);
      EXPECT_EQ(leave(), ncclSuccess) << "the graph is gone once its launches have run";
      EXPECT_THAT(values_of(values, 1), ElementsAre(12));
    });
  }
}

// A nonblocking communicator begins some operations only when it is polled, so an event recorded before is too early.
TEST_F(SimulatedNcclTest, a_nonblocking_call_may_begin_later) {
  on_ranks(2, {.order = Order::late}, [&](int) {
    int late = 0;
    for (int calls = 0; calls < 6; ++calls) {
      float* const values = device_values<float>({1});
      cudaEvent_t const behind = make_event();
      const ncclResult_t code = ncclAllReduce(values, values, 1, ncclFloat32, ncclSum, communicator_, main_);
      EXPECT_EQ(cudaEventRecord(behind, main_), cudaSuccess);
      EXPECT_EQ(cudaStreamWaitEvent(side_, behind, 0), cudaSuccess);
      float read = 0;
      EXPECT_EQ(to_host(&read, values, sizeof read, side_), cudaSuccess);
      EXPECT_EQ(read, code == ncclInProgress ? 1 : 2);
      late += code == ncclInProgress ? 1 : 0;
      EXPECT_EQ(complete(code), ncclSuccess);
    }
    EXPECT_EQ(late, 4);
    EXPECT_EQ(leave(), ncclSuccess);
  });
}

TEST_F(SimulatedNcclTest, a_call_before_the_previous_one_has_completed_is_refused) {
  on_ranks(1, {}, [&](int) {
    float* const values = device_values<float>({1});
    ncclResult_t code = ncclSuccess;
    while (code != ncclInProgress) code = ncclAllReduce(values, values, 1, ncclFloat32, ncclSum, communicator_, main_);
    EXPECT_EQ(ncclAllReduce(values, values, 1, ncclFloat32, ncclSum, communicator_, main_), ncclInvalidArgument);
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("ncclAllReduce of 1 ncclFloat32"));
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("has not returned ncclSuccess"));
    EXPECT_EQ(ncclCommFinalize(communicator_), ncclInvalidArgument);
    EXPECT_EQ(complete(code), ncclSuccess);
    EXPECT_EQ(leave(), ncclSuccess);
  });
}

TEST_F(SimulatedNcclTest, arguments_are_checked) {
  on_ranks(1, {}, [&](int) {
    float* const values = device_values<float>({1, 2, 3, 4});
    auto* const pinned = reinterpret_cast<float*>(pinned_memory(16));
    EXPECT_EQ(sum(values + 1, 4), ncclInvalidArgument) << "past the end";
    EXPECT_EQ(sum(pinned, pinned, 4, main_), ncclInvalidArgument) << "host memory";
    EXPECT_EQ(sum(values, values + 1, 2, main_), ncclInvalidArgument) << "overlap";
    EXPECT_EQ(sum(values, 0), ncclSuccess) << "no work";
    EXPECT_EQ(ncclAllReduce(values, values, 4, ncclFloat16, ncclSum, communicator_, main_), ncclInvalidArgument);
    EXPECT_EQ(ncclAllReduce(values, values, 4, ncclFloat32, ncclMax, communicator_, main_), ncclInvalidArgument);
    EXPECT_EQ(ncclBroadcast(values, values, 4, ncclFloat32, 1, communicator_, main_), ncclInvalidArgument);
    EXPECT_EQ(ncclAllReduce(values, values, 4, ncclFloat32, ncclSum, communicator_, nullptr), ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(sum(values + 1, 4), ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument) << "a group fails with its calls";
    EXPECT_EQ(complete(ncclCommFinalize(communicator_)), ncclSuccess);
    EXPECT_EQ(sum(values, 4), ncclInvalidUsage);
    EXPECT_EQ(ncclCommFinalize(communicator_), ncclInvalidArgument) << "twice";
    EXPECT_EQ(ncclCommDestroy(communicator_), ncclSuccess);
    EXPECT_EQ(sum(values, 4), ncclInvalidArgument) << "destroyed";
    EXPECT_EQ(ncclCommDestroy(communicator_), ncclInvalidArgument) << "twice";
  });
}

TEST_F(SimulatedNcclTest, memory_freed_before_a_sum_runs_loses_the_device) {
  on_ranks(1, {.order = Order::late}, [&](int) {
    float* const values = device_values<float>({1});
    EXPECT_EQ(sum(values, 1), ncclSuccess);
    EXPECT_EQ(cudaFree(values), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(main_), cudaErrorIllegalAddress);
  });
}

// Nothing orders the operations of a group.
TEST_F(SimulatedNcclTest, an_operation_does_not_see_the_results_of_its_group) {
  on_ranks(2, {}, [&](int) {
    float* const values = device_values<float>({1, 0});
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(values, values, 1, ncclFloat32, ncclSum, communicator_, main_), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(values, values + 1, 1, ncclFloat32, ncclSum, communicator_, main_), ncclSuccess);
    EXPECT_EQ(complete(ncclGroupEnd()), ncclSuccess);
    EXPECT_THAT(values_of(values, 2), ElementsAre(2, 2)) << "in the order of the calls, it would be 4";
    EXPECT_EQ(leave(), ncclSuccess);
  });
}

TEST_F(SimulatedNcclTest, two_ranks_do_not_share_a_device) {
  ncclUniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  const auto results = run_ranks(2, [&](int rank) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    EXPECT_EQ(ncclCommInitRankConfig(&communicator_, 2, id, rank, &config), ncclInvalidArgument) << "blocking";
    config.blocking = 0;
    EXPECT_EQ(complete(ncclCommInitRankConfig(&communicator_, 2, id, rank, &config)), ncclInvalidUsage);
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("Duplicate GPU"));
  });
  for (const RankResult& result : results) EXPECT_TRUE(result.passed) << result.output;
}

// Memory that the ranks of a test share.
std::atomic<bool>& shared_flag() {
  void* const memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return *static_cast<std::atomic<bool>*>(memory);
}

TEST_F(SimulatedNcclTest, a_rank_that_aborts_or_dies_is_an_asynchronous_error) {
  for (const bool aborts : {true, false}) {
    std::atomic<bool>& has_begun = shared_flag();
    on_ranks(2, {.order = Order::late}, [&](int rank) {
      if (rank == 1) {
        while (!has_begun) std::this_thread::yield();
        EXPECT_TRUE(!aborts || ncclCommAbort(communicator_) == ncclSuccess);
        return;
      }
      float* const values = device_values<float>({1});
      cudaEvent_t const behind = make_event();
      EXPECT_EQ(sum(values, 1), ncclSuccess);
      EXPECT_EQ(cudaEventRecord(behind, main_), cudaSuccess);
      has_begun = true;
      ncclResult_t state = ncclSuccess;
      while (state == ncclSuccess) {
        EXPECT_EQ(cudaEventQuery(behind), cudaErrorNotReady);
        EXPECT_EQ(ncclCommGetAsyncError(communicator_, &state), ncclSuccess);
      }
      EXPECT_EQ(state, ncclRemoteError);
      EXPECT_EQ(ncclCommAbort(communicator_), ncclSuccess);
      EXPECT_EQ(cudaEventSynchronize(behind), cudaSuccess) << "an abort ends what runs";
    });
  }
}

TEST_F(SimulatedNcclTest, a_host_that_waits_for_a_rank_that_is_gone_is_told) {
  std::atomic<bool>& has_begun = shared_flag();
  expect_found(
      "rank 0 waits forever in operation 1 of its communicator (ncclAllReduce of 1 ncclFloat32), but rank 1 "
      "has begun 0.",
      2, {.order = Order::late}, [&](int rank) {
        if (rank == 1) {
          while (!has_begun) std::this_thread::yield();
          return;
        }
        EXPECT_EQ(sum(device_values<float>({1}), 1), ncclSuccess);
        has_begun = true;
        cudaStreamSynchronize(main_);
      });
}

}  // namespace
}  // namespace lockstep::simulated
