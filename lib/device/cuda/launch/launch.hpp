// Runs a loop body for every index. A body is a trivially copyable functor, `void operator()(std::int64_t) const` with
// LOCKSTEP_HOST_DEVICE. It must not read what another index of the same launch writes. So tests can run a GPU's
// arithmetic on the host.
#pragma once

#include <cstdint>
#include <type_traits>

struct CUstream_st;  // what cudaStream_t points to

namespace lockstep::cuda {

// On the host, for tests: one index after another, from last to first. So a body that needs what lower indices wrote
// fails.
class HostLaunch {
 public:
  template <typename Body>
  void operator()(std::int64_t count, const Body& body) const {
    static_assert(std::is_trivially_copyable_v<Body>);
    for (std::int64_t index = count; index-- > 0;) body(index);
  }
};

// On the GPU, stream-ordered: one thread per index. Defined in cuda_launch.cuh, for .cu files.
class CudaLaunch {
 public:
  // The stream outlives this.
  explicit CudaLaunch(CUstream_st* stream) : stream_(stream) {}

  template <typename Body>
  void operator()(std::int64_t count, const Body& body) const;

 private:
  static void check();  // throws Error if the last launch failed

  CUstream_st* stream_;
};

}  // namespace lockstep::cuda
