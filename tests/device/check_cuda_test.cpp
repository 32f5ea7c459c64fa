#include "device/cuda/check_cuda.hpp"

#include <gtest/gtest.h>

#include "support/messages.hpp"

namespace lockstep::cuda::check_cuda_test {

TEST(CheckCudaTest, each_reason_for_having_no_gpu_has_its_sentence) {
  expect_message(unusable(cudaErrorNoDevice, 13000, 13000).sentence(), {});
  expect_message(unusable(cudaErrorInsufficientDriver, 0, 13000).sentence(), {"--device"});
  expect_message(unusable(cudaErrorInsufficientDriver, 12040, 13000).sentence(), {"--device", "12.4"});
  expect_message(unusable(cudaErrorNoKernelImageForDevice, 13000, 13000).sentence(), {});
  expect_message(unusable(cudaErrorInvalidDeviceFunction, 13000, 13000).reason, {});
  expect_message(unusable(cudaErrorDevicesUnavailable, 13000, 13000).sentence(), {});
  expect_message(unusable(cudaErrorUnknown, 13000, 13000).sentence(), {"--device"});
}

TEST(CheckCudaTest, errors_carry_the_code_a_job_script_goes_by) {
  EXPECT_EQ(failure_of(cudaErrorMemoryAllocation), Failure::out_of_memory);
  EXPECT_EQ(failure_of(cudaErrorECCUncorrectable), Failure::bad_node);
  EXPECT_EQ(failure_of(cudaErrorUnknown), Failure::bad_node);
  EXPECT_EQ(failure_of(static_cast<cudaError_t>(226)), Failure::bad_node);  // cudaErrorContained
  EXPECT_EQ(failure_of(cudaErrorInvalidValue), Failure::other);
  EXPECT_TRUE(is_sticky(cudaErrorIllegalAddress));
  EXPECT_FALSE(is_sticky(cudaErrorMemoryAllocation));
}

TEST(CheckCudaTest, a_failure_says_what_could_not_be_done_and_what_to_try) {
  try {
    check_cuda(cudaErrorMemoryAllocation, "reserve memory");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), Failure::out_of_memory);
    EXPECT_NE(std::string(error.what()).find("reserve memory: out of memory ["), std::string::npos) << error.what();
  }
  check_cuda(cudaSuccess, "do nothing");
}

TEST(CheckCudaDeathTest, an_error_that_spoils_the_context_ends_the_program_though_somebody_would_catch_it) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        try {
          check_cuda(cudaErrorIllegalAddress, "finish the work on the GPU");
        } catch (const Error&) {
          _exit(0);
        }
      },
      "finish the work on the GPU: an illegal memory access was encountered");
}

}  // namespace lockstep::cuda::check_cuda_test
