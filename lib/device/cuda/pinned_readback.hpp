// Copies values to pinned host memory and records an event after the copy.
#pragma once

#include "device/cuda/side_stream.hpp"
#include "device/readback.hpp"

namespace lockstep::cuda {

class PinnedReadback final : public Readback {
 public:
  // `stream` outlives this.
  PinnedReadback(cudaStream_t stream, std::int64_t count);

  void start(const Tensor& values) override;
  bool has_arrived() const override;
  std::span<const float> values() const override;

 private:
  cudaStream_t stream_;
  std::int64_t count_;
  PinnedMemory memory_;
  Event arrived_;
};

}  // namespace lockstep::cuda
