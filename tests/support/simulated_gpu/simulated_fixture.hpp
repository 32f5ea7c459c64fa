// Streams, events, memory and kernels for tests of the simulated GPU.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>

#include "support/simulated_gpu/gpu.hpp"

namespace lockstep::simulated {

class SimulatedRuntimeTest : public testing::Test {
 protected:
  SimulatedRuntimeTest() { start({}); }

  void start(const Settings& settings) {
    reset(settings);
    main_ = make_stream();
    side_ = make_stream();
  }

  static cudaStream_t make_stream() {
    cudaStream_t stream = nullptr;
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    return stream;
  }
  static cudaEvent_t make_event(unsigned flags = cudaEventDisableTiming) {
    cudaEvent_t event = nullptr;
    EXPECT_EQ(cudaEventCreateWithFlags(&event, flags), cudaSuccess);
    return event;
  }
  static std::byte* device_memory(std::size_t bytes) {
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, bytes), cudaSuccess);
    return static_cast<std::byte*>(memory);
  }
  static std::byte* pinned_memory(std::size_t bytes) {
    void* memory = nullptr;
    EXPECT_EQ(cudaMallocHost(&memory, bytes), cudaSuccess);
    return static_cast<std::byte*>(memory);
  }
  static cudaError_t set(std::byte* memory, int value, cudaStream_t stream) {
    return cudaMemsetAsync(memory, value, 1, stream);
  }
  static cudaError_t to_host(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream);
  }
  // The device's byte, after all work of the stream.
  static int read(const std::byte* memory, cudaStream_t stream) {
    std::byte value{};
    EXPECT_EQ(to_host(&value, memory, 1, stream), cudaSuccess);
    return std::to_integer<int>(value);
  }
  // A kernel.
  template <typename Body>
  static cudaError_t launch(cudaStream_t stream, const Body& body) {
    return call([&] {
      return gpu().queue(stream, [body] {
        body();
        return cudaSuccess;
      });
    });
  }

  cudaStream_t main_ = nullptr;
  cudaStream_t side_ = nullptr;
};

}  // namespace lockstep::simulated
