#include "device/cuda/plan_conditions.hpp"

#include <gtest/gtest.h>

namespace lockstep::cuda::plan_conditions_test {

TEST(PlanConditionsTest, name_the_gpu_the_library_and_the_options_that_matter) {
  const GpuKind gpu{"NVIDIA H200", 9, 0, 91900};
  EXPECT_EQ(plan_conditions_of(gpu, {}), "cuda: NVIDIA H200, compute capability 9.0, cuDNN 9.19.0, f32");
  EXPECT_EQ(plan_conditions_of(gpu, {.precision = DType::bf16, .tf32 = true, .deterministic = true}),
            "cuda: NVIDIA H200, compute capability 9.0, cuDNN 9.19.0, bf16, tf32, deterministic");
}

TEST(PlanConditionsTest, take_no_notice_of_what_does_not_matter) {
  const GpuKind gpu{"NVIDIA H200", 9, 0, 91900};
  EXPECT_EQ(plan_conditions_of(gpu, {.threads = 3, .local_rank = 1, .local_size = 8, .verbose = true}),
            plan_conditions_of(gpu, {}));
}

}  // namespace lockstep::cuda::plan_conditions_test
