// Prints what cuDNN knows of this machine's first GPU, as JSON. From it, cuDNN makes plans on a machine without a GPU
// (device/cuda/conv/plan_target.hpp, tests/models/cudnn_plans_test.cpp). Exit code: that of the failure's class.
#include <cstdio>

#include "base/error.hpp"
#include "support/gpu/gpu_description.hpp"

using namespace lockstep;
using namespace lockstep::cuda;

int main() {
  try {
    const CudnnHandle handle = make_cudnn_handle(nullptr);
    cudnnHandle_t of_gpu = handle.get();
    Descriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    properties.set(CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE, 1, &of_gpu).finalize();
    return std::puts(gpu_description(properties).c_str()) < 0 ? 1 : 0;
  } catch (const Error& error) {
    static_cast<void>(std::fprintf(stderr, "%s\n", error.what()));
    return error.exit_code();
  }
}
