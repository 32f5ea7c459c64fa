#include "device/cuda/half_precision.hpp"
#include "device/cuda/launch/cuda_launch.cuh"
#include "device/cuda/passes/flat_kernels.hpp"
#include "device/cuda/with_dtype.hpp"

namespace lockstep::cuda {

void widen_into(const CudaLaunch& launch, const Tensor& sums, const Tensor& values, Accumulate accumulate) {
  const std::int64_t count = values.shape().count();
  with_dtype(sums.dtype(), [&](auto dtype) {
    launch((count + vector_width - 1) / vector_width,
           WidenInto<dtype.value>{sums.data(), values.as<float>(), count, accumulate});
  });
}

void narrow_into(const CudaLaunch& launch, const Tensor& values, const Tensor& narrowed) {
  const std::int64_t count = values.shape().count();
  launch(quads(count),
         Narrow{values.as<float>(), narrowed.dtype(), reinterpret_cast<std::uint16_t*>(narrowed.data()), count});
}

}  // namespace lockstep::cuda
