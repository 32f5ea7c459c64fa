#include "device/cuda/cuda_launch.cuh"
#include "optim/cuda_flat_passes.hpp"

namespace lockstep::cuda {

void queue_set_scalars(const SetSgdScalars& pass, cudaStream_t stream) { CudaLaunch{stream}(1, pass); }

void queue_sgd(const Sgd& pass, cudaStream_t stream) { CudaLaunch{stream}(quads(pass.count), pass); }

void queue_average(const AverageInto& pass, std::int64_t count, cudaStream_t stream) {
  CudaLaunch{stream}(count, pass);
}

void queue_count_non_finite(const CudaContext& context, const Tensor& values, const Tensor& found,
                            Accumulate accumulate, cudaStream_t stream) {
  count_non_finite(context, CudaLaunch(stream), values, found, accumulate);
}

}  // namespace lockstep::cuda
