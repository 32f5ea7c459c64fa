// Runs a loop's body for every index. A body is a trivially copyable functor, `void operator()(std::int64_t) const`
// marked LOCKSTEP_HOST_DEVICE, that reads nothing which another index of the same launch writes. So the arithmetic that
// a GPU runs is tested on the host.
#pragma once

#include <cstdint>
#include <type_traits>

struct CUstream_st;  // what cudaStream_t points to

namespace lockstep::cuda {

// On the host, for tests: one index after another, last to first, which shows a body that needs what lower ones wrote.
class HostLaunch {
 public:
  template <typename Body>
  void operator()(std::int64_t count, const Body& body) const {
    static_assert(std::is_trivially_copyable_v<Body>);
    for (std::int64_t index = count; index-- > 0;) body(index);
  }
};

// On the GPU, stream-ordered: one thread an index. Defined in cuda_launch.cuh, for .cu files.
class CudaLaunch {
 public:
  // The stream outlives this.
  explicit CudaLaunch(CUstream_st* stream) : stream_(stream) {}

  template <typename Body>
  void operator()(std::int64_t count, const Body& body) const;

 private:
  static void check();  // throws Error if the last kernel could not be started

  CUstream_st* stream_;
};

}  // namespace lockstep::cuda
