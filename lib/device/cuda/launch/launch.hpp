// Two forms of kernels, which a test runs on the host. Their bodies are trivially copyable functors whose members have
// LOCKSTEP_HOST_DEVICE.
//
//   Loop:    void operator()(std::int64_t index) const. Must not read what another index of the same launch writes.
//   Blocks:  of block_size threads, for sums. Each thread returns a part; then each thread may read all of its block.
//              struct Part
//              Part part(std::int64_t block, int thread) const
//              void finish(std::int64_t block, int thread, const Part* parts) const  // parts of threads 0, 1, ...
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

struct CUstream_st;  // what cudaStream_t points to

namespace lockstep::cuda {

constexpr int block_size = 256;

// All threads of one block on the host, from last to first, so a body that needs what lower threads wrote fails.
template <typename Body>
void run_block(std::int64_t block, const Body& body) {
  std::array<typename Body::Part, block_size> parts{};
  for (int thread = block_size; thread-- > 0;) parts[thread] = body.part(block, thread);
  for (int thread = block_size; thread-- > 0;) body.finish(block, thread, parts.data());
}

// On the host, for tests: from last to first.
class HostLaunch {
 public:
  template <typename Body>
  void operator()(std::int64_t count, const Body& body) const {
    static_assert(std::is_trivially_copyable_v<Body>);
    for (std::int64_t index = count; index-- > 0;) body(index);
  }

  template <typename Body>
  void in_blocks(std::int64_t blocks, const Body& body) const {
    static_assert(std::is_trivially_copyable_v<Body>);
    for (std::int64_t block = blocks; block-- > 0;) run_block(block, body);
  }
};

// On the GPU, stream-ordered. Defined in cuda_launch.cuh, for .cu files.
class CudaLaunch {
 public:
  // The stream outlives this.
  explicit CudaLaunch(CUstream_st* stream) : stream_(stream) {}

  // One thread per index.
  template <typename Body>
  void operator()(std::int64_t count, const Body& body) const;
  template <typename Body>
  void in_blocks(std::int64_t blocks, const Body& body) const;

 private:
  static void check();  // throws Error if the last launch failed

  CUstream_st* stream_;
};

}  // namespace lockstep::cuda
