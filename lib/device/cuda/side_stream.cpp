#include "device/cuda/side_stream.hpp"

#include <cstring>

#include "device/cuda/check_cuda.hpp"

namespace lockstep::cuda {

Stream make_stream() {
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "create a stream");
  return Stream(stream);
}

Event make_event() {
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "create an event");
  return Event(event);
}

Event make_timed_event() {
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreate(&event), "create an event");
  return Event(event);
}

SideStream::SideStream(cudaStream_t main)
    : main_(main), side_(make_stream()), main_reached_(make_event()), side_reached_(make_event()) {}

// A wait uses the event's state at the time it is queued, so the event can be recorded again at once.
void SideStream::wait_for_main() {
  check_cuda(cudaEventRecord(main_reached_.get(), main_), "record an event");
  check_cuda(cudaStreamWaitEvent(side_.get(), main_reached_.get(), 0), "order a side stream behind the device's work");
}

void SideStream::make_main_wait() {
  check_cuda(cudaEventRecord(side_reached_.get(), side_.get()), "record an event");
  check_cuda(cudaStreamWaitEvent(main_, side_reached_.get(), 0), "order the device's work behind a side stream");
}

PinnedMemory::PinnedMemory(std::int64_t bytes) {
  void* memory = nullptr;
  check_cuda(cudaMallocHost(&memory, static_cast<std::size_t>(bytes)), "pin host memory");
  memory_.reset(static_cast<std::byte*>(memory));
  std::memset(memory, 0, static_cast<std::size_t>(bytes));
}

}  // namespace lockstep::cuda
