// A captured step as a CUDA graph: one launch instead of hundreds.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string_view>
#include <type_traits>

#include "device/arena.hpp"
#include "device/captured_graph.hpp"

namespace lockstep::cuda {

struct DestroyGraph {
  void operator()(cudaGraphExec_t graph) const noexcept { static_cast<void>(cudaGraphExecDestroy(graph)); }
};
using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, DestroyGraph>;

// Throws Error if work queued on `stream` is being captured. A kernel is chosen for convolution `problem` before: that
// waits for the device and takes memory.
void require_not_capturing(cudaStream_t stream, std::string_view problem);

class CudaGraph final : public CapturedGraph {
 public:
  // `stream` and `arena`, from which the work allocates, outlive this. Work on other streams is captured if events
  // order it between work on this stream.
  CudaGraph(cudaStream_t stream, const Arena& arena) : stream_(stream), arena_(arena) {}

  void run(const std::function<void()>& work) override;

 private:
  enum class State { fresh, warm, recorded };

  cudaStream_t stream_;
  const Arena& arena_;
  std::int64_t bytes_in_use_ = 0;  // outside the captured work
  State state_ = State::fresh;
  Graph graph_;
};

}  // namespace lockstep::cuda
