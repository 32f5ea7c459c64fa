#include "device/cuda/check_cuda.hpp"

#include <array>
#include <exception>

namespace lockstep::cuda {
namespace {

// cudaErrorContained, missing in the oldest supported toolkits: a hardware error confined to this process.
constexpr auto memory_contained = static_cast<cudaError_t>(226);

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string sentence(std::string_view library, std::string_view task, std::string_view words,
                     const std::source_location& at) {
  return fmt::format("{} could not {}: {} [{}:{}]", library, task, words, at.file_name(), at.line());
}

// Ends the job by the terminate handler, without unwinding: destructors would call into a lost context.
[[noreturn]] void end_at_once(Failure failure, const std::string& text) {
  try {
    throw Error(failure, text);
  } catch (const Error&) {
    std::terminate();
  }
}

}  // namespace

bool is_sticky(cudaError_t code) {
  if (code == memory_contained) return true;
  switch (code) {
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

Failure failure_of(cudaError_t code) {
  if (code == memory_contained) return Failure::bad_node;
  switch (code) {
    case cudaErrorMemoryAllocation:
      return Failure::out_of_memory;
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorDevicesUnavailable:
    case cudaErrorSystemNotReady:
    case cudaErrorUnknown:  // a GPU that fell off the bus has no error code of its own
      return Failure::bad_node;
    default:
      return Failure::other;
  }
}

void fail_cuda(cudaError_t code, std::string_view task, const std::source_location& at) {
  std::string text = sentence("CUDA", task, cudaGetErrorString(code), at);
  if (code == cudaErrorMemoryAllocation) text += ". Choose a smaller batch.";
  if (failure_of(code) == Failure::bad_node) text += ". Exclude this node.";
  if (is_sticky(code)) end_at_once(failure_of(code), text);
  throw Error(failure_of(code), text);
}

void fail_cudnn(cudnnStatus_t status, std::string_view task, const std::source_location& at) {
  std::array<char, 512> words{};
  cudnnGetLastErrorString(words.data(), words.size());
  const Failure failure =
      status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ? Failure::out_of_memory : Failure::other;
  throw Error(failure, sentence("cuDNN", task, fmt::format("{}: {}", cudnnGetErrorString(status), words.data()), at));
}

void fail_cublas(cublasStatus_t status, std::string_view task, const std::source_location& at) {
  const Failure failure = status == CUBLAS_STATUS_ALLOC_FAILED ? Failure::out_of_memory : Failure::other;
  throw Error(failure, sentence("cuBLAS", task, cublasLtGetStatusString(status), at));
}

Unusable unusable(cudaError_t code, int driver_version, int runtime_version) {
  switch (code) {
    case cudaErrorNoDevice:
      return {"no GPU is visible to this rank", "Check that this node has one and that CUDA_VISIBLE_DEVICES names it."};
    case cudaErrorInsufficientDriver:
    case cudaErrorCallRequiresNewerDriver:
      if (driver_version == 0) {
        return {"no GPU can be used: this node has no NVIDIA driver", "Use --device cpu."};
      }
      return {fmt::format("no GPU can be used: the driver of this node supports CUDA {}, but this build needs {}",
                          version_text(driver_version), version_text(runtime_version)),
              "Update the driver, or use --device cpu."};
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:  // returned by looking up a kernel
    case cudaErrorUnsupportedPtxVersion:
      return {"this build has no code for this GPU", "Rebuild with its architecture in CMAKE_CUDA_ARCHITECTURES."};
    case cudaErrorDevicesUnavailable:
      return {"the GPU is in use by another process (its compute mode is exclusive)", "Wait, or choose another GPU."};
    default:
      return {fmt::format("no GPU can be used: {}", cudaGetErrorString(code)), "Use --device cpu."};
  }
}

Unusable unusable_here(cudaError_t code) {
  int driver = 0;
  int runtime = 0;
  static_cast<void>(cudaDriverGetVersion(&driver));
  static_cast<void>(cudaRuntimeGetVersion(&runtime));
  return unusable(code, driver, runtime);
}

}  // namespace lockstep::cuda
