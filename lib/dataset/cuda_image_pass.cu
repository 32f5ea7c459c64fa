#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "dataset/cuda_image_pass.hpp"
#include "dataset/image_body.hpp"
#include "device/cuda/for_each_index.cuh"

namespace lockstep {
namespace {

template <typename Value>
void convert(const Tensor& planes, const Tensor& images, cudaStream_t stream) {
  const Shape& shape = images.shape();
  const std::int64_t plane = shape[1] * shape[2];
  const std::int64_t pixels = shape[0] * plane;
  // What the device took for each pixel: its padding is its own affair.
  const std::int64_t padded = images.bytes() / (pixels * static_cast<std::int64_t>(sizeof(Value)));
  const ImageBody<Value> body{planes.as<float>(), shape[3], plane, padded, reinterpret_cast<Value*>(images.data())};
  cuda::for_each_index(pixels, body, stream, "lay pictures out");
}

}  // namespace

void queue_image_conversion(const Tensor& planes, const Tensor& images, cudaStream_t stream) {
  if (images.dtype() == DType::bf16) {
    convert<__nv_bfloat16>(planes, images, stream);
  } else if (images.dtype() == DType::f16) {
    convert<__half>(planes, images, stream);
  } else {
    convert<float>(planes, images, stream);
  }
}

}  // namespace lockstep
