// Names of GPUs, by the answers of a driver that has two slices of one GPU, a whole one, and one that it does not name.
#include "device/cuda/visible_gpus.hpp"

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

// NOLINTNEXTLINE(readability-identifier-naming): the driver's name
extern "C" int cuDeviceGet(int* device, int index);

namespace lockstep::cuda {
namespace {

int count = 0;

// Two slices of one GPU were one GPU, with half of its memory for each rank.
TEST(VisibleGpusTest, slices_of_a_gpu_are_told_apart) {
  int device = 0;
  ASSERT_EQ(cuDeviceGet(&device, 1), 0);  // the driver is loaded
  count = 4;
  EXPECT_THAT(visible_gpus(), testing::ElementsAre("MIG-abababab-abab-abab-abab-ababababab64",
                                                   "MIG-abababab-abab-abab-abab-ababababab65",
                                                   "GPU-abababab-abab-abab-abab-abababababab", "00000000:1B:00.0"));
}

}  // namespace
}  // namespace lockstep::cuda

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker's names
extern "C" {

cudaError_t __wrap_cudaGetDeviceCount(int* found) {
  *found = lockstep::cuda::count;
  return cudaSuccess;
}
cudaError_t __wrap_cudaDeviceGetPCIBusId(char* address, int, int) {
  constexpr std::string_view text("00000000:1B:00.0");
  address[text.copy(address, text.size())] = 0;
  return cudaSuccess;
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
