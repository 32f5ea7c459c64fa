// Stream capture and graphs of the CUDA runtime.
#include <algorithm>

#include "support/simulated_gpu/gpu.hpp"

using namespace lockstep::simulated;

namespace {

// Why the capture that `stream` began cannot become a graph; cudaSuccess if it can.
cudaError_t check_end(const Stream& stream) {
  if (!stream.began_capture) return cudaErrorStreamCaptureUnmatched;
  if (stream.capture->thread != std::this_thread::get_id()) return cudaErrorStreamCaptureWrongThread;
  if (!stream.capture->is_valid) return cudaErrorStreamCaptureInvalidated;
  return stream.capture->graph.all_lead_to(stream.ends) ? cudaSuccess : cudaErrorStreamCaptureUnjoined;
}

void leave(const CaptureHandle& capture) {
  capture->is_active = false;
  for (Stream* const stream : gpu().streams()) {
    if (stream->capture != capture) continue;
    stream->capture = nullptr;
    stream->ends.clear();
    stream->began_capture = false;
  }
}

template <typename Made, typename Handle>
cudaError_t destroy(std::set<Made*>& all, Handle handle) {
  auto* const found = reinterpret_cast<Made*>(handle);
  if (all.erase(found) == 0) return cudaErrorInvalidValue;
  delete found;
  return cudaSuccess;
}

// The graph's work follows the stream's. Later work of the stream follows all of the graph's.
void queue_graph(ReadyGraph& graph, Stream& stream) {
  Schedule& schedule = gpu().schedule();
  const WorkHandle begin = schedule.add({stream.tail, graph.last_launch}, {}, stream.device, stream.lane);
  std::vector<WorkHandle> queued;
  for (const CapturedWork& one : graph.works) {
    std::vector<WorkHandle> after{begin};
    for (const std::size_t index : one.after) after.push_back(queued[index]);
    queued.push_back(schedule.add(std::move(after), one.run, stream.device, one.lane, one.condition));
  }
  queued.push_back(begin);
  stream.tail = schedule.add(std::move(queued), {}, stream.device, stream.lane);
  graph.last_launch = stream.tail;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return call([&] {
    Stream* const stream = gpu().find(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (mode != cudaStreamCaptureModeThreadLocal) return cudaErrorNotSupported;  // nobody uses the other modes
    if (stream->capture != nullptr) return cudaErrorIllegalState;
    stream->capture = std::make_shared<Capture>();
    stream->capture->thread = std::this_thread::get_id();
    stream->began_capture = true;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  return call([&] {
    *graph = nullptr;
    Stream* const stream = gpu().find(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (stream->capture == nullptr) return cudaErrorIllegalState;
    const CaptureHandle capture = stream->capture;
    const cudaError_t code = check_end(*stream);
    if (code == cudaErrorStreamCaptureUnmatched || code == cudaErrorStreamCaptureWrongThread) {
      capture->is_valid = false;
      return code;
    }
    leave(capture);
    if (code != cudaSuccess) {
      capture->graph = {};  // events may keep the capture
      return code;
    }
    auto* const made = new Graph(std::move(capture->graph));
    gpu().graphs().insert(made);
    *graph = reinterpret_cast<cudaGraph_t>(made);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  return call([&] {
    const Stream* const stream = gpu().find(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    *status = stream->capture == nullptr  ? cudaStreamCaptureStatusNone
              : stream->capture->is_valid ? cudaStreamCaptureStatusActive
                                          : cudaStreamCaptureStatusInvalidated;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* ready, cudaGraph_t handle, unsigned long long) {
  return call([&] {
    auto* const graph = reinterpret_cast<Graph*>(handle);
    if (!gpu().graphs().contains(graph)) return cudaErrorInvalidValue;
    auto* const made = new ReadyGraph{graph->works, {}};
    gpu().ready_graphs().insert(made);
    *ready = reinterpret_cast<cudaGraphExec_t>(made);
    const Block* const largest = gpu().memory().largest();
    if (gpu().settings().fault == Fault::freed_under_graph && largest != nullptr) {
      gpu().memory().free(largest->data, Place::device);
    }
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t at) {
  return call([&] {
    auto* const graph = reinterpret_cast<ReadyGraph*>(handle);
    Stream* const stream = gpu().find(at);
    if (!gpu().ready_graphs().contains(graph) || stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (stream->capture != nullptr) return cudaErrorStreamCaptureUnsupported;  // nobody nests graphs
    queue_graph(*graph, *stream);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call([&] { return destroy(gpu().graphs(), graph); });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  return call([&] {
    if (gpu().settings().fault == Fault::kept_graph) return cudaSuccess;
    return destroy(gpu().ready_graphs(), graph);
  });
}

}  // extern "C"
