// The layout of pictures on a GPU, queued on a stream.
#pragma once

#include <cuda_runtime_api.h>

#include "device/tensor.hpp"

namespace lockstep::cuda {

// `planes` holds [n, c, h, w] fp32 for `images` [n, h, w, c]. Stream-ordered.
void queue_image_layout(const Tensor& planes, const Tensor& images, cudaStream_t stream);

}  // namespace lockstep::cuda
