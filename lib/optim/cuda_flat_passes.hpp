// The passes of device/cuda/flat_kernels.hpp, queued on a stream.
#pragma once

#include <cuda_runtime_api.h>

#include "device/cuda/flat_kernels.hpp"

namespace lockstep::cuda {

// Puts what changes from step to step where a queued pass will read it. Run for one index.
struct SetSgdScalars {
  SgdScalars values;
  SgdScalars* slot;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t) const { *slot = values; }
};

// All pointers are the device's. Stream-ordered.
void queue_set_scalars(const SetSgdScalars& pass, cudaStream_t stream);
void queue_sgd(const Sgd& pass, cudaStream_t stream);
void queue_average(const AverageInto& pass, std::int64_t count, cudaStream_t stream);
void queue_count_non_finite(const CudaContext& context, const Tensor& values, const Tensor& found,
                            Accumulate accumulate, cudaStream_t stream);

}  // namespace lockstep::cuda
