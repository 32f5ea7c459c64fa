// Streams and events of the CUDA runtime.
#include "support/simulated_gpu/gpu.hpp"

using namespace lockstep::simulated;

namespace {

// A stream that waits for an event of a capture becomes part of it.
cudaError_t wait_in_capture(Stream& stream, const Event& event) {
  const CaptureHandle& capture = event.capture;
  if (!capture->is_active) return cudaErrorCapturedEvent;
  if (!capture->is_valid) return cudaErrorStreamCaptureInvalidated;
  if (stream.capture != nullptr && stream.capture != capture) return cudaErrorStreamCaptureMerge;
  stream.capture = capture;
  stream.ends.insert(event.ends.begin(), event.ends.end());
  return cudaSuccess;
}

cudaError_t wait_for(Stream& stream, const Event& event) {
  if (event.capture != nullptr) return wait_in_capture(stream, event);
  if (event.work == nullptr) return cudaSuccess;
  if (stream.capture != nullptr) {
    stream.capture->is_valid = false;
    return cudaErrorStreamCaptureIsolation;
  }
  const Run nothing = [] { return cudaSuccess; };
  stream.tail = gpu().schedule().add({stream.tail, event.work}, nothing, stream.device, stream.lane);
  return cudaSuccess;
}

cudaError_t make_event(cudaEvent_t* made, unsigned flags) {
  auto* const event = new Event{current_device(), (flags & cudaEventDisableTiming) == 0, {}, {}, {}, {}};
  gpu().events().insert(event);
  *made = reinterpret_cast<cudaEvent_t>(event);
  return cudaSuccess;
}

// What the host may ask of an event.
cudaError_t check_for_host(const Event* event) {
  if (event == nullptr) return cudaErrorInvalidResourceHandle;
  if (event->capture != nullptr) {
    event->capture->is_valid = false;
    return cudaErrorCapturedEvent;
  }
  return gpu().may_wait() ? cudaSuccess : cudaErrorStreamCaptureUnsupported;
}

bool has_occurred(const Event& event) {
  const bool is_early = gpu().settings().fault == Fault::early_event && !event.is_timed;
  return event.work == nullptr || event.work->is_done || is_early;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* made, unsigned) {
  return call([&] {
    const int device = current_device();
    bool is_first = true;
    for (const Stream* const one : gpu().streams()) is_first &= one->device != device;
    auto* const stream = new Stream{device, is_first ? Lane::main : Lane::side, {}, {}, {}};
    gpu().streams().insert(stream);
    *made = reinterpret_cast<cudaStream_t>(stream);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return call([&] {
    Stream* const stream = gpu().find(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (stream->capture != nullptr) stream->capture->is_valid = false;
    gpu().streams().erase(stream);
    delete stream;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return call([&] {
    const Stream* const stream = gpu().find(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (!gpu().may_wait()) return cudaErrorStreamCaptureUnsupported;
    gpu().schedule().finish(stream->tail);
    return gpu().lost_error(current_device());
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return call([&] {
    if (gpu().find(stream) == nullptr || gpu().find(event) == nullptr) return cudaErrorInvalidResourceHandle;
    if (gpu().settings().fault == Fault::missing_wait) return cudaSuccess;
    return wait_for(*gpu().find(stream), *gpu().find(event));
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return call([&] { return make_event(event, cudaEventDefault); });
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call([&] { return make_event(event, flags); });
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  return call([&] {
    Event* const event = gpu().find(handle);
    if (event == nullptr) return cudaErrorInvalidResourceHandle;
    gpu().events().erase(event);
    delete event;
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t at) {
  return call([&] {
    Event* const event = gpu().find(handle);
    Stream* const stream = gpu().find(at);
    if (event == nullptr || stream == nullptr || event->device != stream->device) {
      return cudaErrorInvalidResourceHandle;
    }
    event->capture = stream->capture;
    if (stream->capture != nullptr) {
      event->ends = stream->ends;
      return stream->capture->is_valid ? cudaSuccess : cudaErrorStreamCaptureInvalidated;
    }
    event->milliseconds = std::make_shared<double>();
    const cudaError_t queued = gpu().queue(at, [time = event->milliseconds] {
      *time = gpu().milliseconds();
      return cudaSuccess;
    });
    if (queued == cudaSuccess) event->work = stream->tail;
    return queued;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return call([&] {
    const Event* const event = gpu().find(handle);
    if (const cudaError_t refused = check_for_host(event); refused != cudaSuccess) return refused;
    if (!has_occurred(*event)) gpu().schedule().finish(event->work);
    return gpu().lost_error(current_device());
  });
}

// A host that polls sees its event occur in the end.
cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return call([&] {
    const Event* const event = gpu().find(handle);
    if (const cudaError_t refused = check_for_host(event); refused != cudaSuccess) return refused;
    if (has_occurred(*event)) return cudaSuccess;
    gpu().schedule().progress(event->work);
    const cudaError_t lost = gpu().lost_error(current_device());
    return lost != cudaSuccess ? lost : cudaErrorNotReady;
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return call([&] {
    for (const cudaEvent_t handle : {start, end}) {
      const Event* const event = gpu().find(handle);
      if (event == nullptr || !event->is_timed || event->work == nullptr) return cudaErrorInvalidResourceHandle;
      if (!event->work->is_done) return cudaErrorNotReady;
    }
    *milliseconds = static_cast<float>(*gpu().find(end)->milliseconds - *gpu().find(start)->milliseconds);
    return cudaSuccess;
  });
}

}  // extern "C"
