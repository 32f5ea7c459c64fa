// The loop body of dataset/image_body.hpp, queued on a stream.
#pragma once

#include <cuda_runtime_api.h>

#include "device/tensor.hpp"

namespace lockstep {

// `planes` holds [n, c, h, w] fp32 for `images` [n, h, w, c]. Stream-ordered.
void queue_image_conversion(const Tensor& planes, const Tensor& images, cudaStream_t stream);

}  // namespace lockstep
