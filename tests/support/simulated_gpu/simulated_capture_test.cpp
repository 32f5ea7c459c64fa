// Stream capture and graphs of the simulated GPU.
#include <array>
#include <functional>
#include <thread>
#include <vector>

#include "support/simulated_gpu/simulated_fixture.hpp"

namespace lockstep::simulated {
namespace {

class SimulatedCaptureTest : public SimulatedRuntimeTest {
 protected:
  void begin() { ASSERT_EQ(cudaStreamBeginCapture(main_, cudaStreamCaptureModeThreadLocal), cudaSuccess); }
  cudaError_t end() { return cudaStreamEndCapture(main_, &graph_); }
  cudaGraphExec_t instantiate() {
    cudaGraphExec_t ready = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&ready, graph_, 0), cudaSuccess);
    return ready;
  }

  cudaGraph_t graph_ = nullptr;
};

TEST_F(SimulatedCaptureTest, captured_work_runs_at_each_launch_and_not_before) {
  std::byte* const device = device_memory(1);
  ASSERT_EQ(set(device, 0, main_), cudaSuccess);
  begin();
  ASSERT_EQ(launch(main_, [=] { *device = std::byte(std::to_integer<int>(*device) + 1); }), cudaSuccess);
  ASSERT_EQ(end(), cudaSuccess);
  EXPECT_EQ(read(device, main_), 0);
  cudaGraphExec_t const ready = instantiate();
  EXPECT_EQ(cudaGraphDestroy(graph_), cudaSuccess);
  for (int launches = 1; launches < 3; ++launches) {
    ASSERT_EQ(cudaGraphLaunch(ready, main_), cudaSuccess);
    EXPECT_EQ(read(device, main_), launches);
  }
  EXPECT_EQ(cudaGraphExecDestroy(ready), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(ready, main_), cudaErrorInvalidResourceHandle);
}

TEST_F(SimulatedCaptureTest, a_side_stream_joins_by_an_event_and_must_lead_back) {
  cudaEvent_t const fork = make_event();
  cudaEvent_t const join = make_event();
  for (const bool leads_back : {true, false}) {
    begin();
    ASSERT_EQ(cudaEventRecord(fork, main_), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(side_, fork, 0), cudaSuccess);
    ASSERT_EQ(launch(side_, [] {}), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(join, side_), cudaSuccess);
    ASSERT_TRUE(!leads_back || cudaStreamWaitEvent(main_, join, 0) == cudaSuccess);
    EXPECT_EQ(end(), leads_back ? cudaSuccess : cudaErrorStreamCaptureUnjoined);
  }
}

TEST_F(SimulatedCaptureTest, calls_that_may_wait_are_refused_and_end_the_capture) {
  cudaEvent_t const event = make_event();
  ASSERT_EQ(cudaEventRecord(event, side_), cudaSuccess);
  std::byte* const device = device_memory(64);
  std::array<std::byte, 64> pageable{};
  void* memory = nullptr;
  const std::vector<std::function<cudaError_t()>> calls{
      [&] { return cudaMalloc(&memory, 1); },       [&] { return cudaFree(device); },
      [&] { return cudaMallocHost(&memory, 1); },   [&] { return cudaStreamSynchronize(main_); },
      [&] { return cudaStreamSynchronize(side_); }, [&] { return cudaEventSynchronize(event); },
      [&] { return cudaEventQuery(event); },        [&] { return to_host(pageable.data(), device, 64, main_); },
  };
  for (const auto& refused : calls) {
    begin();
    EXPECT_EQ(refused(), cudaErrorStreamCaptureUnsupported);
    EXPECT_EQ(launch(main_, [] {}), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph_, nullptr);
    EXPECT_EQ(cudaStreamSynchronize(main_), cudaSuccess) << "the stream is usable again";
  }
}

TEST_F(SimulatedCaptureTest, another_thread_may_wait_but_not_end_the_capture) {
  begin();
  cudaError_t waited{};
  cudaError_t ended{};
  std::thread([&] {
    waited = cudaStreamSynchronize(side_);
    ended = end();
  }).join();
  EXPECT_EQ(waited, cudaSuccess);
  EXPECT_EQ(ended, cudaErrorStreamCaptureWrongThread);
}

TEST_F(SimulatedCaptureTest, captured_and_queued_work_do_not_wait_for_each_other) {
  cudaEvent_t const queued = make_event();
  cudaEvent_t const captured = make_event();
  ASSERT_EQ(cudaEventRecord(queued, side_), cudaSuccess);
  begin();
  ASSERT_EQ(cudaEventRecord(captured, main_), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(main_, queued, 0), cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(cudaEventQuery(captured), cudaErrorCapturedEvent);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamWaitEvent(side_, captured, 0), cudaErrorCapturedEvent);
}

TEST_F(SimulatedCaptureTest, memory_freed_under_a_graph_loses_the_device) {
  start({.order = Order::direct, .fault = Fault::freed_under_graph});
  std::byte* const device = device_memory(64);
  begin();
  ASSERT_EQ(set(device, 1, main_), cudaSuccess);
  ASSERT_EQ(end(), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(instantiate(), main_), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(main_), cudaErrorIllegalAddress);
}

TEST_F(SimulatedCaptureTest, a_graph_s_streams_overlap_unless_they_wait) {
  for (const Order order : {Order::late, Order::early}) {
    start({.order = order});
    std::byte* const device = device_memory(1);
    cudaEvent_t const fork = make_event();
    cudaEvent_t const join = make_event();
    begin();
    ASSERT_EQ(cudaEventRecord(fork, main_), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(side_, fork, 0), cudaSuccess);
    ASSERT_EQ(set(device, 2, side_), cudaSuccess);
    ASSERT_EQ(set(device, 1, main_), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(join, side_), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(main_, join, 0), cudaSuccess);
    ASSERT_EQ(end(), cudaSuccess);
    ASSERT_EQ(cudaGraphLaunch(instantiate(), main_), cudaSuccess);
    EXPECT_EQ(read(device, main_), order == Order::late ? 2 : 1);
  }
}

}  // namespace
}  // namespace lockstep::simulated
