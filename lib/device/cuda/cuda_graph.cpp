#include "device/cuda/cuda_graph.hpp"

#include "device/cuda/check_cuda.hpp"
#include "device/profiler_range.hpp"

namespace lockstep::cuda {
namespace {

struct DestroyTemplate {
  void operator()(cudaGraph_t graph) const noexcept { static_cast<void>(cudaGraphDestroy(graph)); }
};
using Template = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyTemplate>;

// While this object lives, work queued on the stream is captured instead of run.
class Capture {
 public:
  // Captures this thread only: calls of NCCL and other threads run as usual.
  explicit Capture(cudaStream_t stream) : stream_(stream) {
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin to record a step");
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  // After an exception, the stream is usable again.
  ~Capture() {
    if (stream_ == nullptr) return;
    cudaGraph_t unfinished = nullptr;
    static_cast<void>(cudaStreamEndCapture(stream_, &unfinished));
    const Template discarded(unfinished);
  }

  Template finish() {
    cudaGraph_t recorded = nullptr;
    check_cuda(cudaStreamEndCapture(stream_, &recorded), "record a step");
    stream_ = nullptr;
    return Template(recorded);
  }

 private:
  cudaStream_t stream_;
};

Graph record(cudaStream_t stream, const std::function<void()>& work) {
  const ProfilerRange range("capture a step");
  Capture capture(stream);
  work();
  const Template recorded = capture.finish();
  cudaGraphExec_t graph = nullptr;
  check_cuda(cudaGraphInstantiate(&graph, recorded.get(), 0), "make a recorded step ready");
  return Graph(graph);
}

}  // namespace

void require_not_capturing(cudaStream_t stream, std::string_view problem) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(stream, &status), "tell whether a graph is being captured");
  require(status == cudaStreamCaptureStatusNone, Failure::other,
          "no kernel is chosen yet for convolution {}, and a step is being captured. This is a defect of this program. "
          "Use --no-graphs.",
          problem);
}

// The first run is not captured: libraries load code and allocate workspaces then.
void CudaGraph::run(const std::function<void()>& work) {
  if (state_ == State::fresh) {
    work();
    state_ = State::warm;
    return;
  }
  if (state_ == State::warm) {
    bytes_in_use_ = arena_.used_bytes();
    graph_ = record(stream_, work);
    state_ = State::recorded;
  }
  // Otherwise a tensor may be where the graph writes.
  require(
      arena_.used_bytes() == bytes_in_use_, Failure::other,
      "a captured step cannot be repeated: {} bytes of the GPU's memory are in use, but {} were when it was captured. "
      "This is a defect of this program. Use --no-graphs.",
      arena_.used_bytes(), bytes_in_use_);
  const ProfilerRange range("launch a captured step");
  check_cuda(cudaGraphLaunch(graph_.get(), stream_), "repeat a recorded step");
}

}  // namespace lockstep::cuda
