#include "support/device/noted_cuda.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <string_view>

namespace lockstep::cuda {

NotedCuda& noted_cuda() {
  static NotedCuda cuda;
  return cuda;
}

namespace {

// Handles are addresses in here: what number they have says which object they stand for.
std::array<std::byte, 4096> handles;

template <typename Handle>
Handle handle(std::size_t number) {
  return reinterpret_cast<Handle>(&handles.at(number));
}

std::size_t number_of(const void* handle) {
  return static_cast<std::size_t>(static_cast<const std::byte*>(handle) - handles.data());
}

cudaError_t note(std::string_view function, const std::string& arguments) {
  NotedCuda& cuda = noted_cuda();
  cuda.calls.push_back(fmt::format("{}({})", function, arguments));
  const auto answer = cuda.answers.find(std::string(function));
  if (answer == cuda.answers.end()) return cudaSuccess;
  cuda.last_error = answer->second;
  return answer->second;
}

template <typename Handle>
cudaError_t make(std::string_view function, Handle* made) {
  static std::size_t made_so_far = 0;  // of this kind of handle
  *made = handle<Handle>(++made_so_far);
  return note(function, fmt::format("{}", made_so_far));
}

cudaError_t launch(dim3 blocks, void** arguments, cudaStream_t stream) {
  noted_cuda().launched(arguments);
  return note("cudaLaunchKernel", fmt::format("{} block{}, {}", blocks.x, blocks.x == 1 ? "" : "s", name_of(stream)));
}

std::string name_of(cudaEvent_t event) { return fmt::format("event {}", number_of(event)); }

}  // namespace

std::string name_of(cudaStream_t stream) { return fmt::format("stream {}", number_of(stream)); }

}  // namespace lockstep::cuda

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker's names
using namespace lockstep::cuda;

extern "C" {

cudaError_t __wrap_cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return make("cudaEventCreateWithFlags", event);
}
cudaError_t __wrap_cudaEventDestroy(cudaEvent_t event) { return note("cudaEventDestroy", name_of(event)); }
cudaError_t __wrap_cudaEventQuery(cudaEvent_t event) { return note("cudaEventQuery", name_of(event)); }
cudaError_t __wrap_cudaEventSynchronize(cudaEvent_t event) { return note("cudaEventSynchronize", name_of(event)); }
cudaError_t __wrap_cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return note("cudaEventRecord", fmt::format("{}, {}", name_of(event), name_of(stream)));
}
cudaError_t __wrap_cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return make("cudaStreamCreateWithFlags", stream);
}
cudaError_t __wrap_cudaStreamDestroy(cudaStream_t stream) { return note("cudaStreamDestroy", name_of(stream)); }
cudaError_t __wrap_cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return note("cudaStreamWaitEvent", fmt::format("{}, {}", name_of(stream), name_of(event)));
}
cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t stream) { return note("cudaStreamSynchronize", name_of(stream)); }
// Compiled code calls the one or the other, by CUDA's version.
cudaError_t __wrap_cudaLaunchKernel(const void*, dim3 blocks, dim3, void** arguments, std::size_t,
                                    cudaStream_t stream) {
  return launch(blocks, arguments, stream);
}
cudaError_t __wrap___cudaLaunchKernel(const void*, dim3 blocks, dim3, void** arguments, std::size_t,
                                      cudaStream_t stream) {
  return launch(blocks, arguments, stream);
}
cudaError_t __wrap_cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return note("cudaStreamBeginCapture", fmt::format("{}, mode {}", name_of(stream), static_cast<int>(mode)));
}
cudaError_t __wrap_cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = noted_cuda().is_capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return note("cudaStreamIsCapturing", name_of(stream));
}
cudaError_t __wrap_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = noted_cuda().answers.contains("cudaStreamEndCapture") ? nullptr : handle<cudaGraph_t>(1);
  return note("cudaStreamEndCapture", name_of(stream));
}
cudaError_t __wrap_cudaGraphInstantiate(cudaGraphExec_t* ready, cudaGraph_t, unsigned long long) {
  *ready = handle<cudaGraphExec_t>(1);
  return note("cudaGraphInstantiate", "");
}
cudaError_t __wrap_cudaGraphLaunch(cudaGraphExec_t, cudaStream_t stream) {
  return note("cudaGraphLaunch", name_of(stream));
}
cudaError_t __wrap_cudaGraphDestroy(cudaGraph_t) { return note("cudaGraphDestroy", ""); }
cudaError_t __wrap_cudaGraphExecDestroy(cudaGraphExec_t) { return note("cudaGraphExecDestroy", ""); }
cudaError_t __wrap_cudaHostRegister(void*, std::size_t, unsigned) { return note("cudaHostRegister", ""); }
cudaError_t __wrap_cudaHostUnregister(void*) { return note("cudaHostUnregister", ""); }
cudaError_t __wrap_cudaMallocHost(void** memory, std::size_t bytes) {
  *memory = ::operator new(bytes);
  return note("cudaMallocHost", fmt::format("{}", bytes));
}
cudaError_t __wrap_cudaFreeHost(void* memory) {
  ::operator delete(memory);
  return note("cudaFreeHost", "");
}
cudaError_t __wrap_cudaMemcpyAsync(void*, const void*, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  return note("cudaMemcpyAsync", fmt::format("{}, {}", bytes, name_of(stream)));
}
cudaError_t __wrap_cudaGetLastError() {
  const cudaError_t found = noted_cuda().last_error;
  noted_cuda().last_error = cudaSuccess;
  return found;
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
