#include "device/cuda/pinned_readback.hpp"

#include <cassert>

#include "device/cuda/check_cuda.hpp"

namespace lockstep::cuda {

PinnedReadback::PinnedReadback(cudaStream_t stream, std::int64_t count)
    : stream_(stream), count_(count), memory_(count * size_of(DType::f32)), arrived_(make_event()) {}

void PinnedReadback::start(const Tensor& values) {
  assert(values.bytes() == count_ * size_of(DType::f32));
  check_cuda(cudaMemcpyAsync(memory_.data(), values.data(), static_cast<std::size_t>(values.bytes()),
                             cudaMemcpyDeviceToHost, stream_),
             "copy a step's results to the host");
  check_cuda(cudaEventRecord(arrived_.get(), stream_), "record an event");
}

bool PinnedReadback::has_arrived() const {
  const cudaError_t state = cudaEventQuery(arrived_.get());
  if (state == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());  // CUDA records this as an error, which the next kernel launch would report
    return false;
  }
  check_cuda(state, "tell whether a step has ended");
  return true;
}

std::span<const float> PinnedReadback::values() const {
  check_cuda(cudaEventSynchronize(arrived_.get()), "wait for a step's results");
  return {reinterpret_cast<const float*>(memory_.data()), static_cast<std::size_t>(count_)};
}

}  // namespace lockstep::cuda
