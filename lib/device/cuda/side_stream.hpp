// A second stream for copies and reductions that run while the device computes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace lockstep::cuda {

struct CloseStream {
  void operator()(cudaStream_t stream) const noexcept { static_cast<void>(cudaStreamDestroy(stream)); }
};
struct CloseEvent {
  void operator()(cudaEvent_t event) const noexcept { static_cast<void>(cudaEventDestroy(event)); }
};
using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, CloseStream>;
using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, CloseEvent>;

Stream make_stream();
Event make_event();        // without timing
Event make_timed_event();  // with timing

// The streams wait for each other on the device only. The host never waits here.
class SideStream {
 public:
  // `main` outlives this.
  explicit SideStream(cudaStream_t main);

  cudaStream_t handle() const { return side_.get(); }
  // Work queued on the side stream from now on runs after all work queued on the main stream so far.
  void wait_for_main();
  // Work queued on the main stream from now on runs after all work queued on the side stream so far.
  void make_main_wait();

 private:
  cudaStream_t main_;
  Stream side_;
  Event main_reached_;
  Event side_reached_;
};

// Host memory that the device accesses directly. Initially zero.
class PinnedMemory {
 public:
  explicit PinnedMemory(std::int64_t bytes);
  std::byte* data() const { return memory_.get(); }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept { static_cast<void>(cudaFreeHost(memory)); }
  };
  std::unique_ptr<std::byte, Free> memory_;
};

}  // namespace lockstep::cuda
