#include "device/cuda/launch/cuda_launch.cuh"
#include "optim/cuda_flat_passes.hpp"

namespace lockstep::cuda {

void queue_set_value(const SetValue& pass, CUstream_st* stream) { CudaLaunch{stream}(1, pass); }

void queue_judge_step(const JudgeStep& pass, CUstream_st* stream) { CudaLaunch{stream}(1, pass); }

void queue_sgd(const Sgd& pass, CUstream_st* stream) { CudaLaunch{stream}(quads(pass.count), pass); }

void queue_average(const AverageInto& pass, std::int64_t count, CUstream_st* stream) {
  CudaLaunch{stream}(count, pass);
}

void queue_count_outside(const Tensor& values, float limit, const Tensor& scratch, const Tensor& found,
                         Accumulate accumulate, CUstream_st* stream) {
  count_outside(CudaLaunch(stream), values, limit, scratch, found, accumulate);
}

void queue_sum_fixed(const SumFixed& pass, std::int64_t count, CUstream_st* stream) { CudaLaunch{stream}(count, pass); }

void queue_values_of_fixed(const ValuesOfFixed& pass, std::int64_t count, CUstream_st* stream) {
  CudaLaunch{stream}(count, pass);
}

}  // namespace lockstep::cuda
