#include "dataset/cuda_image_pass.hpp"
#include "device/cuda/cuda_launch.cuh"
#include "device/cuda/image_kernels.hpp"
#include "device/cuda/with_dtype.hpp"

namespace lockstep::cuda {

void queue_image_layout(const Tensor& planes, const Tensor& images, cudaStream_t stream) {
  const CudaLaunch launch(stream);
  const FeatureMap to(images);
  with_dtype(images.dtype(), [&](auto dtype) {
    launch(to.vectors(), InterleaveImages<dtype()>{planes.as<float>(), to});
  });
}

}  // namespace lockstep::cuda
