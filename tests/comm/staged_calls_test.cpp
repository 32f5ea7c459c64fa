// The order in which CUDA's functions are called where the host sums for a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/cuda_staged_all_reducer.hpp"
#include "device/cuda/passes/mark_kernels.hpp"
#include "device/cuda/side_stream.hpp"
#include "support/device/hosted_cuda_device.hpp"
#include "support/device/noted_cuda.hpp"

namespace lockstep {
namespace {

using cuda::noted_cuda;
using testing::ElementsAre;
using testing::StartsWith;

// The second of three ranks, each of which owns 16 elements of a slice. Notes what it is asked for.
class SharesOfThree final : public AllReducer {
 public:
  Tensor allocate(std::int64_t count, DType dtype) override {
    memory_.emplace_back(static_cast<std::size_t>(count * size_of(dtype)));
    return {memory_.back().data(), count * size_of(dtype), Shape{count}, dtype, Layout::plain};
  }
  void start_sum(const Tensor& values) override { note("sum", values); }
  SlicePart part_of(const Tensor& values, int rank) const override {
    return {16 * rank, rank == 2 ? values.shape()[0] - 32 : 16};
  }
  void start_reduce_scatter(const Tensor& values) override { note("reduce-scatter", values); }
  void start_all_gather(const Tensor& values) override { note("all-gather", values); }
  void wait() override { noted_cuda().calls.emplace_back("host waits"); }
  std::string description() const override { return "shares of three"; }

 private:
  // "host sum of 40 f32 at byte 32": of what was allocated last.
  void note(const std::string& what, const Tensor& values) {
    noted_cuda().calls.push_back("host " + what + " of " + std::to_string(values.shape()[0]) + " " +
                                 name_of(values.dtype()) + " at byte " +
                                 std::to_string(values.data() - memory_.back().data()));
  }
  std::list<std::vector<std::byte>> memory_;
};

class StagedCallsTest : public testing::Test {
 protected:
  StagedCallsTest() {
    noted_cuda() = {};
    noted_cuda().launched = [](void** arguments) { (*static_cast<const cuda::MarkSum*>(arguments[1]))(0); };
  }
  ~StagedCallsTest() override { noted_cuda() = {}; }
  static std::vector<std::string> calls() { return std::exchange(noted_cuda().calls, {}); }

  std::unique_ptr<Device> device_ = open_hosted_cuda_device({});
  cuda::Stream stream_ = cuda::make_stream();
  std::unique_ptr<AllReducer> reducer_ =
      make_cuda_staged_all_reducer(*device_, stream_.get(), 1, std::make_unique<SharesOfThree>());
};

TEST_F(StagedCallsTest, the_devices_part_of_a_sum_is_its_copy_to_the_host_between_two_marks) {
  const Tensor values = reducer_->allocate(64, DType::f32);
  calls();
  for (const std::int64_t first : {0, 32}) reducer_->start_sum(values.slice(first, 32));
  const std::vector<std::string> started = calls();
  ASSERT_EQ(started.size(), 14U) << testing::PrintToString(started);
  EXPECT_THAT(std::vector(started.begin() + 1, started.begin() + 7),  // after the making of an event
              ElementsAre(StartsWith("cudaEventRecord("), StartsWith("cudaStreamWaitEvent("),
                          StartsWith("cudaLaunchKernel(1 block"), StartsWith("cudaMemcpyAsync(128"),
                          StartsWith("cudaLaunchKernel(1 block"), StartsWith("cudaEventRecord(")));
  const SumMarks marks = read_marks(*reducer_->marks());
  EXPECT_EQ(marks.begun, 2U);
  EXPECT_EQ(marks.bucket, 1U);
  EXPECT_EQ(marks.ended, 2U);
  reducer_->wait();
  reducer_->start_sum(values.slice(0, 32));
  EXPECT_EQ(read_marks(*reducer_->marks()).bucket, 0U);
  reducer_->wait();
}

// Of a slice, only what changed is copied: 40 f32 elements, of which this rank owns 16.
TEST_F(StagedCallsTest, a_slice_of_another_rank_is_copied_in_one_direction_only) {
  reducer_->allocate(64, DType::f32);
  const Tensor weights = reducer_->allocate(64, DType::f32);
  calls();
  reducer_->start_reduce_scatter(weights.slice(0, 40));
  reducer_->start_all_gather(weights.slice(8, 40));
  reducer_->wait();
  std::vector<std::string> copies = calls();
  std::erase_if(copies, [](const std::string& call) {
    return !call.starts_with("cudaMemcpyAsync") && !call.starts_with("host");
  });
  EXPECT_THAT(copies, ElementsAre(StartsWith("cudaMemcpyAsync(160"), StartsWith("cudaMemcpyAsync(64"),
                                  "host reduce-scatter of 40 f32 at byte 0", "host all-gather of 40 f32 at byte 32",
                                  "host waits", StartsWith("cudaMemcpyAsync(64"), StartsWith("cudaMemcpyAsync(64"),
                                  StartsWith("cudaMemcpyAsync(32")));
}

// A sharded optimizer's scratch array lies in sums of integers. A training ended with gradients that overflowed.
TEST_F(StagedCallsTest, a_slice_of_another_type_than_its_memory_has_the_same_bytes_on_both_sides) {
  const Tensor sums = reducer_->allocate(64, DType::i64);
  const Tensor scratch(sums.data(), 100 * size_of(DType::f32), Shape{100}, DType::f32, Layout::plain);
  calls();
  reducer_->start_all_gather(scratch.slice(60, 40));
  reducer_->wait();
  std::vector<std::string> copies = calls();
  std::erase_if(copies, [](const std::string& call) {
    return !call.starts_with("cudaMemcpyAsync") && !call.starts_with("host");
  });
  EXPECT_THAT(copies, ElementsAre(StartsWith("cudaMemcpyAsync(64"), "host all-gather of 40 f32 at byte 240",
                                  "host waits", StartsWith("cudaMemcpyAsync(64"), StartsWith("cudaMemcpyAsync(32")));
}

}  // namespace
}  // namespace lockstep
