// Marks a stream before and after each all-reduce of gradients. Captured and replayed with the work queued there.
#pragma once

#include <cuda_runtime_api.h>

#include "device/cuda/passes/mark_kernels.hpp"
#include "device/cuda/side_stream.hpp"
#include "device/device.hpp"

namespace lockstep::cuda {

class SumMarker {
 public:
  // Allocates memory of `device`. `device` and `stream` outlive this.
  SumMarker(Device& device, cudaStream_t stream);
  SumMarker(const SumMarker&) = delete;
  SumMarker& operator=(const SumMarker&) = delete;
  ~SumMarker();

  // Stream-ordered. Call right before and right after the all-reduce of the step's next bucket.
  void begin();
  void end();
  // The next bucket is the first one of a new step.
  void end_step() { bucket_ = 0; }

  // In host memory, written by the device. Valid while this object lives.
  SumMarks& marks() const { return *told_; }

 private:
  cudaStream_t stream_;
  PinnedMemory memory_;
  SumMarks* told_;
  SumMarks* kept_;  // in device memory
  std::uint64_t bucket_ = 0;
};

}  // namespace lockstep::cuda
