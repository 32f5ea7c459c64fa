// The order in which CUDA's functions are called, for what needs no more of a GPU than its answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "device/cuda/cuda_graph.hpp"
#include "device/cuda/passes/cuda_flat_passes.hpp"
#include "device/cuda/pinned_readback.hpp"
#include "device/cuda/side_stream.hpp"
#include "support/device/noted_cuda.hpp"
#include "support/messages.hpp"

namespace lockstep::cuda {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class CudaCallsTest : public testing::Test {
 protected:
  CudaCallsTest() { calls(); }
  ~CudaCallsTest() override { noted_cuda() = {}; }

  // Since the last call of this.
  static std::vector<std::string> calls() { return std::exchange(noted_cuda().calls, {}); }

  Stream stream_ = make_stream();
  const std::string name_ = name_of(stream_.get());
  alignas(Arena::alignment) std::array<std::byte, 1 << 12> memory_{};
  Arena arena_{memory_.data(), static_cast<std::int64_t>(memory_.size())};
};

TEST_F(CudaCallsTest, a_step_is_called_first_then_recorded_then_repeated) {
  CudaGraph graph(stream_.get(), arena_);
  int worked = 0;
  const auto work = [&] { ++worked; };

  graph.run(work);
  EXPECT_THAT(calls(), IsEmpty());
  graph.run(work);
  EXPECT_THAT(calls(), ElementsAre("cudaStreamBeginCapture(" + name_ + ", mode 1)",  // of this thread alone
                                   "cudaStreamEndCapture(" + name_ + ")", "cudaGraphInstantiate()",
                                   "cudaGraphDestroy()", "cudaGraphLaunch(" + name_ + ")"));
  graph.run(work);
  EXPECT_THAT(calls(), ElementsAre("cudaGraphLaunch(" + name_ + ")"));
  EXPECT_EQ(worked, 2);
}

TEST_F(CudaCallsTest, work_that_fails_while_it_is_recorded_leaves_a_stream_that_records_no_more) {
  CudaGraph graph(stream_.get(), arena_);
  graph.run([] {});
  EXPECT_THROW(graph.run([] { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_THAT(calls(), ElementsAre("cudaStreamBeginCapture(" + name_ + ", mode 1)",
                                   "cudaStreamEndCapture(" + name_ + ")", "cudaGraphDestroy()"));
}

// Only an assertion guarded it, and release builds have none.
TEST_F(CudaCallsTest, a_step_is_not_repeated_with_other_memory_in_use) {
  CudaGraph graph(stream_.get(), arena_);
  for (int run = 0; run < 2; ++run) graph.run([] {});
  calls();
  const Tensor kept(arena_.allocate(16), Shape{4}, DType::f32, Layout::plain);
  expect_error(Failure::other, {"64 bytes", "--no-graphs"}, [&] { graph.run([] {}); });
  EXPECT_THAT(calls(), IsEmpty());
}

TEST_F(CudaCallsTest, no_kernel_is_chosen_while_a_step_is_recorded) {
  EXPECT_NO_THROW(require_not_capturing(stream_.get(), "forward 3->16"));
  noted_cuda().is_capturing = true;
  expect_error(Failure::other, {"forward 3->16", "--no-graphs"},
               [&] { require_not_capturing(stream_.get(), "forward 3->16"); });
}

class NoCopies final : public NarrowCopies {
 public:
  std::byte* narrow_copy(const Tensor&) const override { return nullptr; }
};

// It took three launches for each bucket of gradients.
TEST_F(CudaCallsTest, overflows_are_counted_in_one_launch_for_each_array) {
  alignas(Arena::alignment) std::array<std::byte, 1 << 15> memory{};
  Arena arena{memory.data(), static_cast<std::int64_t>(memory.size())};
  const CudaContext context{arena, DType::f16};
  const NoCopies copies;
  const std::unique_ptr<FlatPasses> flat = make_flat_passes(context, copies, stream_.get());
  const auto make = [&](std::int64_t count) {
    return Tensor(arena.allocate(count * size_of(DType::f32)), Shape{count}, DType::f32, Layout::plain);
  };
  const Tensor counters = make(flat->overflow_counters());
  const Tensor values = make(100);
  const Tensor count = make(1);
  calls();
  for (int bucket = 0; bucket < 3; ++bucket) flat->count_overflows(values, 1.0F, counters, Accumulate::add);
  EXPECT_EQ(calls().size(), 3U);
  flat->sum_overflows(counters, count);
  EXPECT_EQ(calls().size(), 1U);
}

TEST_F(CudaCallsTest, a_recording_that_cuda_refuses_is_told) {
  CudaGraph graph(stream_.get(), arena_);
  graph.run([] {});
  noted_cuda().answers["cudaStreamEndCapture"] = cudaErrorStreamCaptureInvalidated;
  EXPECT_THROW(graph.run([] {}), Error);
}

// A question that CUDA answers with "not yet" was found, as an error, by the start of the next kernel.
TEST_F(CudaCallsTest, asking_whether_results_have_arrived_leaves_no_error_behind) {
  PinnedReadback readback(stream_.get(), 4);
  noted_cuda().answers["cudaEventQuery"] = cudaErrorNotReady;
  EXPECT_FALSE(readback.has_arrived());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  noted_cuda().answers.clear();
  EXPECT_TRUE(readback.has_arrived());
  noted_cuda().answers["cudaEventQuery"] = cudaErrorInvalidValue;
  EXPECT_THROW(static_cast<void>(readback.has_arrived()), Error);
}

TEST_F(CudaCallsTest, results_are_behind_the_event_that_tells_of_them) {
  PinnedReadback readback(stream_.get(), 4);
  const Tensor values(arena_.allocate(16), Shape{4}, DType::f32, Layout::plain);  // of a block of 64 bytes
  calls();
  readback.start(values);
  const std::vector<std::string> started = calls();
  ASSERT_EQ(started.size(), 2U);
  EXPECT_EQ(started[0], "cudaMemcpyAsync(16, " + name_ + ")");
  EXPECT_THAT(started[1], testing::MatchesRegex("cudaEventRecord\\(event [0-9]+, " + name_ + "\\)"));
  EXPECT_EQ(readback.values().size(), 4U);
  EXPECT_THAT(calls(), ElementsAre(testing::StartsWith("cudaEventSynchronize(event ")));
}

TEST_F(CudaCallsTest, a_side_stream_waits_for_events_and_the_host_does_not) {
  SideStream side(stream_.get());
  const std::string side_name = name_of(side.handle());
  calls();
  side.wait_for_main();
  side.make_main_wait();
  const std::vector<std::string> order = calls();
  ASSERT_EQ(order.size(), 4U);
  EXPECT_THAT(order[0], testing::EndsWith(", " + name_ + ")"));
  EXPECT_THAT(order[1], testing::StartsWith("cudaStreamWaitEvent(" + side_name + ", event "));
  EXPECT_THAT(order[2], testing::EndsWith(", " + side_name + ")"));
  EXPECT_THAT(order[3], testing::StartsWith("cudaStreamWaitEvent(" + name_ + ", event "));
}

}  // namespace
}  // namespace lockstep::cuda
