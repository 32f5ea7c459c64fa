// Devices, versions and errors of the CUDA runtime.
#include <array>
#include <cstdio>
#include <cstring>

#include "support/simulated_gpu/gpu.hpp"

using namespace lockstep::simulated;

namespace {

bool is_device(int device) { return device >= 0 && device < gpu().settings().devices; }

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = gpu().settings().devices;
  return *count == 0 ? last_error() = cudaErrorNoDevice : cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  return call([&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    set_current_device(device);
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device();
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return call([&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    *properties = {};
    std::strcpy(properties->name, "Simulated GPU");
    properties->totalGlobalMem = gpu().settings().memory_bytes;
    properties->major = 9;
    properties->minor = 0;
    properties->multiProcessorCount = 1;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return call([&] {
    if (!is_device(device) || length < 13) return cudaErrorInvalidValue;
    std::snprintf(text, static_cast<std::size_t>(length), "0000:%02X:00.0", 0x0B + device);
    return cudaSuccess;
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

// A lost device's error stays.
cudaError_t cudaGetLastError() {
  const std::lock_guard lock(mutex());
  const cudaError_t lost = gpu().lost_error(current_device());
  const cudaError_t code = lost == cudaSuccess ? last_error() : lost;
  last_error() = cudaSuccess;
  return code;
}

const char* cudaGetErrorString(cudaError_t code) {
  switch (code) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorIllegalState:
      return "the operation cannot be performed in the present state";
    case cudaErrorHostMemoryAlreadyRegistered:
      return "part or all of the requested memory range is already mapped";
    case cudaErrorHostMemoryNotRegistered:
      return "pointer does not correspond to a registered memory region";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    case cudaErrorStreamCaptureMerge:
      return "operation would result in a merge of separate capture sequences";
    case cudaErrorStreamCaptureUnmatched:
      return "capture was not ended in the same stream as it began";
    case cudaErrorStreamCaptureUnjoined:
      return "capturing stream has unjoined work";
    case cudaErrorStreamCaptureIsolation:
      return "dependency created on uncaptured work in another stream";
    case cudaErrorStreamCaptureWrongThread:
      return "attempt to terminate a thread-local capture sequence from another thread";
    case cudaErrorCapturedEvent:
      return "operation not permitted on an event last recorded in a capturing stream";
    default:
      return "unrecognized error code";
  }
}

}  // extern "C"
