// Memory and copies of the CUDA runtime.
#include <cstring>
#include <memory>
#include <vector>

#include "support/simulated_gpu/gpu.hpp"

using namespace lockstep::simulated;

namespace {

cudaError_t allocate(void** memory, std::size_t bytes, Place place) {
  if (memory == nullptr) return cudaErrorInvalidValue;
  if (!gpu().may_wait()) return cudaErrorStreamCaptureUnsupported;
  *memory = nullptr;
  if (bytes == 0) return cudaSuccess;
  const Settings& settings = gpu().settings();
  const int device = current_device();
  if (place == Place::device && bytes > settings.memory_bytes - gpu().memory().used_bytes(device)) {
    return cudaErrorMemoryAllocation;
  }
  const bool is_offset = place == Place::device && settings.fault == Fault::offset_memory;
  *memory = gpu().memory().allocate(bytes, place, device, is_offset ? 64 : 0);
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
  if (place == Place::pinned && settings.fault == Fault::short_pinned) gpu().memory().halve(*memory);
  return cudaSuccess;
}

cudaError_t release(void* memory, Place place) {
  if (!gpu().may_wait()) return cudaErrorStreamCaptureUnsupported;
  if (memory == nullptr || gpu().memory().free(memory, place)) return cudaSuccess;
  return cudaErrorInvalidValue;
}

// Each side must be where the direction says, within its block.
bool allows(const void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  Memory& memory = gpu().memory();
  const auto is_right = [&](const void* side, bool is_device) {
    return is_device ? memory.is_on_device(side, bytes, current_device())
                     : memory.is_host(side) && memory.allows(side, bytes);
  };
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  return kind != cudaMemcpyDefault && is_right(to, to_device) && is_right(from, from_device);
}

bool is_pageable(const void* address) { return gpu().memory().find(address) == nullptr; }

bool is_capturing(cudaStream_t stream) {
  const Stream* const found = gpu().find(stream);
  return found != nullptr && found->capture != nullptr;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return call([&] { return allocate(memory, bytes, Place::device); });
}
cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  return call([&] { return allocate(memory, bytes, Place::pinned); });
}
cudaError_t cudaFree(void* memory) {
  return call([&] { return release(memory, Place::device); });
}
cudaError_t cudaFreeHost(void* memory) {
  return call([&] { return release(memory, Place::pinned); });
}

cudaError_t cudaHostRegister(void* memory, std::size_t bytes, unsigned) {
  return call([&] {
    if (!gpu().may_wait()) return cudaErrorStreamCaptureUnsupported;
    if (memory == nullptr || bytes == 0) return cudaErrorInvalidValue;
    return gpu().memory().add_registered(static_cast<std::byte*>(memory), bytes);
  });
}

cudaError_t cudaHostUnregister(void* memory) {
  return call([&] {
    if (!gpu().may_wait()) return cudaErrorStreamCaptureUnsupported;
    return gpu().memory().free(memory, Place::registered) ? cudaSuccess : cudaErrorHostMemoryNotRegistered;
  });
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return call([&] {
    *total = gpu().settings().memory_bytes;
    *free = *total - gpu().memory().used_bytes(current_device());
    return cudaSuccess;
  });
}

// Pageable memory: a copy to the device has read it when the call returns, and a copy to the host is complete.
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return call([&] {
    if (bytes == 0) return cudaSuccess;
    if (!allows(to, from, bytes, kind)) return cudaErrorInvalidValue;
    const bool is_staged = is_pageable(to) || is_pageable(from);
    if (is_staged && is_capturing(stream)) {
      gpu().may_wait();
      return cudaErrorStreamCaptureUnsupported;
    }
    std::shared_ptr<std::vector<std::byte>> staged;
    if (is_pageable(from)) {
      const auto* const first = static_cast<const std::byte*>(from);
      staged = std::make_shared<std::vector<std::byte>>(first, first + bytes);
    }
    const cudaError_t queued = gpu().queue(stream, [=] {
      if (!gpu().memory().allows(to, bytes)) return cudaErrorIllegalAddress;
      if (staged == nullptr && !gpu().memory().allows(from, bytes)) return cudaErrorIllegalAddress;
      std::memcpy(to, staged == nullptr ? from : staged->data(), bytes);
      return cudaSuccess;
    });
    if (queued != cudaSuccess || !is_pageable(to)) return queued;
    gpu().schedule().finish(gpu().find(stream)->tail);
    return gpu().lost_error(current_device());
  });
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  return call([&] {
    if (bytes == 0) return cudaSuccess;
    if (!gpu().memory().is_on_device(memory, bytes, current_device())) return cudaErrorInvalidValue;
    if (gpu().settings().fault == Fault::unset_memory) return cudaSuccess;
    return gpu().queue(stream, [=] {
      std::memset(memory, value, bytes);
      return cudaSuccess;
    });
  });
}

}  // extern "C"
