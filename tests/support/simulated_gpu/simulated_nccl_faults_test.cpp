// Mistakes in the use of NCCL, made on purpose: the simulation names each one, or its bits are wrong in some order.
#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "support/simulated_gpu/simulated_ranks.hpp"

namespace lockstep::simulated {
namespace {

using testing::ElementsAre;

class SimulatedNcclFaultsTest : public SimulatedNcclTest {
 protected:
  // A graph with a sum of the side stream, which joins the main stream again if it `joins`.
  cudaError_t capture(float* values, bool joins, cudaGraphExec_t& ready) const {
    cudaEvent_t const fork = make_event();
    cudaEvent_t const join = make_event();
    EXPECT_EQ(cudaStreamBeginCapture(main_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(fork, main_), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(side_, fork, 0), cudaSuccess);
    EXPECT_EQ(sum(values, values, 1, side_), ncclSuccess);
    EXPECT_EQ(cudaEventRecord(join, side_), cudaSuccess);
    EXPECT_TRUE(!joins || cudaStreamWaitEvent(main_, join, 0) == cudaSuccess);
    cudaGraph_t graph = nullptr;
    const cudaError_t code = cudaStreamEndCapture(main_, &graph);
    if (code != cudaSuccess) return code;
    EXPECT_EQ(cudaGraphInstantiate(&ready, graph, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    return cudaSuccess;
  }

  cudaGraphExec_t captured(float* values) const {
    cudaGraphExec_t ready = nullptr;
    EXPECT_EQ(capture(values, true, ready), cudaSuccess);
    return ready;
  }

  // What the host, and an update of another stream, make of the sum of 1 and 1 with or without a wait for it.
  std::vector<float> after_sum(bool waits) const {
    float* const values = device_values<float>({1});
    float* const updated = device_values<float>({0});
    cudaEvent_t const written = make_event();
    cudaEvent_t const summed = make_event();
    auto* const read = reinterpret_cast<float*>(pinned_memory(sizeof(float)));
    EXPECT_EQ(cudaEventRecord(written, main_), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(side_, written, 0), cudaSuccess);
    EXPECT_EQ(sum(values, values, 1, side_), ncclSuccess);
    EXPECT_EQ(cudaEventRecord(summed, side_), cudaSuccess);
    EXPECT_TRUE(!waits || cudaStreamWaitEvent(main_, summed, 0) == cudaSuccess);
    EXPECT_EQ(launch(main_, [=] { *updated = 10 * *values; }), cudaSuccess);
    EXPECT_EQ(to_host(read, values, sizeof(float), side_), cudaSuccess);
    EXPECT_TRUE(!waits || cudaStreamSynchronize(side_) == cudaSuccess);
    const float seen = *read;
    const float update = values_of(updated, 1).front();
    EXPECT_EQ(leave(), ncclSuccess);
    return {seen, update};
  }
};

TEST_F(SimulatedNcclFaultsTest, ranks_that_call_different_operations_are_named) {
  expect_found("operation 1 of the communicator is ncclAllReduce of 1 ncclFloat32 on rank 0, but ncclAllReduce of 2", 2,
               {}, [&](int rank) {
                 float* const values = device_values<float>({1, 2});
                 EXPECT_EQ(sum(values, rank == 0 ? 1 : 2), ncclSuccess);
                 values_of(values, 2);
               });
  expect_found("ncclReduce of 2 ncclFloat32 with root 0 on rank 1, but ncclAllReduce of 2 ncclFloat32 on rank 0", 2, {},
               [&](int rank) {
                 float* const values = device_values<float>({1, 2});
                 EXPECT_EQ(rank == 0
                               ? sum(values, 2)
                               : complete(ncclReduce(values, values, 2, ncclFloat32, ncclSum, 0, communicator_, main_)),
                           ncclSuccess);
                 values_of(values, 2);
               });
}

TEST_F(SimulatedNcclFaultsTest, types_that_differ_between_ranks_are_named) {
  expect_found("ncclInt64 on rank 1, but ncclAllReduce of 1 ncclFloat32 on rank 0", 2, {}, [&](int rank) {
    float* const values = device_values<float>({1, 2});
    const ncclDataType_t type = rank == 0 ? ncclFloat32 : ncclInt64;
    EXPECT_EQ(complete(ncclAllReduce(values, values, 1, type, ncclSum, communicator_, main_)), ncclSuccess);
    values_of(values, 2);
  });
}

TEST_F(SimulatedNcclFaultsTest, a_sum_left_out_on_one_rank_is_named) {
  expect_found(
      "rank 0 waits forever in operation 2 of its communicator (ncclAllReduce of 1 ncclFloat32), but rank 1 "
      "left its communicator after 1.",
      2, {.order = Order::late}, [&](int rank) {
        float* const values = device_values<float>({1});
        for (int calls = rank; calls < 2; ++calls) EXPECT_EQ(sum(values, 1), ncclSuccess);
        EXPECT_EQ(leave(), ncclSuccess);
      });
  expect_found("operation 3 of the communicator is ncclAllReduce of 4 ncclFloat32 on rank 1, but ncclAllReduce of 3", 2,
               {.fault = Fault::left_out_sum}, [&](int) {
                 float* const values = device_values<float>({1, 2, 3, 4, 5, 6});
                 for (std::size_t count = 1; count < 6; ++count) EXPECT_EQ(sum(values, count), ncclSuccess);
                 values_of(values, 1);
               });
}

TEST_F(SimulatedNcclFaultsTest, operations_of_two_streams_need_an_order) {
  expect_found("run at the same time", 1, {.order = Order::random, .seed = 3}, [&](int) {
    float* const values = device_values<float>({1, 2, 3});
    for (int calls = 0; calls < 50; ++calls) {
      EXPECT_EQ(sum(values, values, 1, main_), ncclSuccess);
      EXPECT_EQ(sum(values + 1, values + 1, 2, side_), ncclSuccess);
    }
    values_of(values, 3);
  });
}

TEST_F(SimulatedNcclFaultsTest, a_communicator_that_a_graph_holds_can_neither_be_aborted_nor_end) {
  const auto end = [](ncclResult_t (*function)(ncclComm_t)) {
    return [function](ncclComm_t communicator) { return function(communicator); };
  };
  for (const auto& [name, ends] : {std::pair{"ncclCommAbort", end(ncclCommAbort)},
                                   {"ncclCommDestroy", end(ncclCommDestroy)},
                                   {"ncclCommFinalize", end(ncclCommFinalize)}}) {
    expect_found(std::string(name) + " waits forever, because a captured graph holds the communicator of rank 0", 1, {},
                 [&](int) {
                   captured(device_values<float>({1}));
                   complete(ends(communicator_));
                 });
  }
  on_ranks(1, {}, [&](int) {
    EXPECT_EQ(cudaGraphExecDestroy(captured(device_values<float>({1}))), cudaSuccess);
    EXPECT_EQ(ncclCommAbort(communicator_), ncclSuccess);
  });
}

TEST_F(SimulatedNcclFaultsTest, a_sum_that_does_not_lead_back_ends_the_capture) {
  on_ranks(1, {}, [&](int) {
    cudaGraphExec_t ready = nullptr;
    EXPECT_EQ(capture(device_values<float>({1}), false, ready), cudaErrorStreamCaptureUnjoined);
    EXPECT_EQ(leave(), ncclSuccess);
  });
}

TEST_F(SimulatedNcclFaultsTest, what_does_not_wait_for_a_sum_sees_the_values_before_it) {
  for (const Order order : {Order::direct, Order::late, Order::early}) {
    on_ranks(2, {.order = order}, [&](int) { EXPECT_THAT(after_sum(true), ElementsAre(2, 20)); });
  }
  on_ranks(2, {.order = Order::late}, [&](int) {
    const std::vector<float> seen = after_sum(false);
    EXPECT_TRUE(std::isnan(seen[0])) << "the copy to the host has not run";
    EXPECT_EQ(seen[1], 10) << "the update has run before the sum";
  });
}

TEST_F(SimulatedNcclFaultsTest, unwritten_memory_makes_sums_no_number) {
  on_ranks(2, {}, [&](int rank) {
    auto* const values = reinterpret_cast<float*>(device_memory(2 * sizeof(float)));
    const std::size_t written = rank == 0 ? 2 : 1;
    EXPECT_EQ(cudaMemsetAsync(values, 0, written * sizeof(float), main_), cudaSuccess);
    EXPECT_EQ(sum(values, 2), ncclSuccess);
    const std::vector<float> sums = values_of(values, 2);
    EXPECT_EQ(sums[0], 0);
    EXPECT_TRUE(std::isnan(sums[1]));
    EXPECT_EQ(leave(), ncclSuccess);
  });
}

}  // namespace
}  // namespace lockstep::simulated
