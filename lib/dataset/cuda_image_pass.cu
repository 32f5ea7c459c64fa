#include "dataset/cuda_image_pass.hpp"
#include "dataset/image_body.hpp"
#include "device/cuda/cuda_launch.cuh"

namespace lockstep {

void queue_image_conversion(const Tensor& planes, const Tensor& images, cudaStream_t stream) {
  const Shape& shape = images.shape();
  const std::int64_t plane = shape[1] * shape[2];
  const std::int64_t pixels = shape[0] * plane;
  // What the device took for each pixel: its padding is its own affair.
  const std::int64_t padded = images.bytes() / (pixels * size_of(images.dtype()));
  const cuda::CudaLaunch launch(stream);
  launch(pixels, ImageBody{planes.as<float>(), shape[3], plane, padded, images.data(), images.dtype()});
}

}  // namespace lockstep
