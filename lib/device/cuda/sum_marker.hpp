// Marks a stream before and after each sum of gradients. Recorded and repeated with whatever else is queued there.
#pragma once

#include <cuda_runtime_api.h>

#include "device/cuda/passes/mark_kernels.hpp"
#include "device/cuda/side_stream.hpp"
#include "device/device.hpp"

namespace lockstep::cuda {

class SumMarker {
 public:
  // Takes memory of `device`, which outlives this, as `stream` does.
  SumMarker(Device& device, cudaStream_t stream);
  SumMarker(const SumMarker&) = delete;
  SumMarker& operator=(const SumMarker&) = delete;
  ~SumMarker();

  // Stream-ordered: right before what sums the next bucket of a step, and right after it.
  void begin();
  void end();
  // The next bucket is the first of another step.
  void end_step() { bucket_ = 0; }

  // In the host's memory, where the device writes; as long as this lives.
  SumMarks& marks() const { return *told_; }

 private:
  cudaStream_t stream_;
  PinnedMemory memory_;
  SumMarks* told_;
  SumMarks* kept_;  // in the device's memory
  std::uint64_t bucket_ = 0;
};

}  // namespace lockstep::cuda
