// The order in which CUDA's functions are called where the host sums for a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "comm/cuda_staged_all_reducer.hpp"
#include "comm/mpi_all_reducer.hpp"
#include "device/cuda/passes/mark_kernels.hpp"
#include "device/cuda/side_stream.hpp"
#include "support/device/hosted_cuda_device.hpp"
#include "support/device/noted_cuda.hpp"

namespace lockstep {
namespace {

using cuda::noted_cuda;
using testing::ElementsAre;
using testing::StartsWith;

class StagedCallsTest : public testing::Test {
 protected:
  StagedCallsTest() {
    noted_cuda() = {};
    noted_cuda().launched = [](void** arguments) { (*static_cast<const cuda::MarkSum*>(arguments[1]))(0); };
  }
  ~StagedCallsTest() override { noted_cuda() = {}; }
  static std::vector<std::string> calls() { return std::exchange(noted_cuda().calls, {}); }

  const Communicator world_{MPI_COMM_SELF};
  std::unique_ptr<Device> device_ = open_hosted_cuda_device({});
  cuda::Stream stream_ = cuda::make_stream();
  std::unique_ptr<AllReducer> reducer_ =
      make_cuda_staged_all_reducer(*device_, stream_.get(), make_mpi_all_reducer(world_));
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

}  // namespace
}  // namespace lockstep
