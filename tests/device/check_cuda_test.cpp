#include "device/cuda/check_cuda.hpp"

#include <gtest/gtest.h>

namespace lockstep::cuda {
namespace {

TEST(CheckCudaTest, each_reason_for_having_no_gpu_has_its_sentence) {
  EXPECT_EQ(unusable(cudaErrorNoDevice, 13000, 13000).sentence(),
            "no GPU is visible to this rank. Is there one on this node, and does CUDA_VISIBLE_DEVICES name it?");
  EXPECT_EQ(unusable(cudaErrorInsufficientDriver, 0, 13000).sentence(),
            "no GPU can be used: this node has no NVIDIA driver. Use --device cpu?");
  EXPECT_EQ(
      unusable(cudaErrorInsufficientDriver, 12040, 13000).sentence(),
      "no GPU can be used: the driver of this node serves CUDA 12.4, this build needs 13.0. Update the driver, or "
      "use --device cpu?");
  EXPECT_EQ(unusable(cudaErrorNoKernelImageForDevice, 13000, 13000).sentence(),
            "this build has no code for this GPU. Rebuild with its architecture in CMAKE_CUDA_ARCHITECTURES.");
  EXPECT_EQ(unusable(cudaErrorInvalidDeviceFunction, 13000, 13000).reason, "this build has no code for this GPU");
  EXPECT_EQ(unusable(cudaErrorDevicesUnavailable, 13000, 13000).sentence(),
            "the GPU is in use by another process (its compute mode is exclusive). Wait, or choose another GPU.");
  EXPECT_EQ(unusable(cudaErrorUnknown, 13000, 13000).sentence(),
            "no GPU can be used: unknown error. Use --device cpu?");
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
    EXPECT_TRUE(std::string(error.what()).starts_with("CUDA could not reserve memory: out of memory ["));
    EXPECT_TRUE(std::string(error.what()).ends_with("]. Choose a smaller batch?"));
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
      "CUDA could not finish the work on the GPU: an illegal memory access was encountered");
}

}  // namespace
}  // namespace lockstep::cuda
