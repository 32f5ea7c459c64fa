// Handles of the simulated cuDNN, and the execution of plans.
#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "support/simulated_gpu/convolution.hpp"
#include "support/simulated_gpu/descriptor.hpp"
#include "support/simulated_gpu/engines.hpp"
#include "support/simulated_gpu/gpu.hpp"

namespace lockstep::simulated {
namespace {

constexpr std::uintptr_t workspace_alignment = 256;

std::set<CudnnContext*>& contexts() {
  static auto* const all = new std::set<CudnnContext*>;
  return *all;
}

std::string& last_refusal() {
  static auto* const text = new std::string;
  return *text;
}

bool is_aligned(const void* address, std::uintptr_t alignment) {
  return reinterpret_cast<std::uintptr_t>(address) % alignment == 0;
}

bool is_on_device(const void* address, std::int64_t bytes) {
  return gpu().memory().is_on_device(address, static_cast<std::size_t>(bytes), current_device());
}

bool share_memory(const std::byte* one, std::int64_t one_bytes, const std::byte* other, std::int64_t other_bytes) {
  return one < other + other_bytes && other < one + one_bytes;
}

cudnnStatus_t check_tensor(const CudnnTensor& tensor, const std::byte* memory) {
  if (!is_aligned(memory, static_cast<std::uintptr_t>(tensor.alignment))) {
    return refuse_cudnn(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, "an operand is not aligned as stated");
  }
  if (!is_on_device(memory, tensor.bytes())) {
    return refuse_cudnn(CUDNN_STATUS_BAD_PARAM, "an operand is not in one block of device memory");
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_workspace(const std::byte* memory, std::int64_t bytes) {
  if (bytes == 0) return CUDNN_STATUS_SUCCESS;
  if (!is_aligned(memory, workspace_alignment)) {
    return refuse_cudnn(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, "the workspace is not aligned to 256 bytes");
  }
  if (!is_on_device(memory, bytes)) {
    return refuse_cudnn(CUDNN_STATUS_BAD_PARAM, "the workspace is not in one block of device memory");
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t execute(const CudnnContext* context, const CudnnDescriptor* plan, const CudnnDescriptor* pack) {
  if (context == nullptr || plan == nullptr || pack == nullptr || !plan->is_final || !pack->is_final) {
    return refuse_cudnn(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "there is no such handle, plan or variant pack");
  }
  const Convolution& convolution = *plan->convolution;
  const auto ids = pack->values<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = pack->values<std::byte*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  auto* const workspace = pack->value<std::byte*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  if (ids.size() != pointers.size()) return refuse_cudnn(CUDNN_STATUS_BAD_PARAM, "ids and pointers differ in number");
  std::vector<std::byte*> found;
  for (const CudnnTensor* const tensor : convolution.tensors()) {
    const auto place = std::ranges::find(ids, tensor->id);
    if (place == ids.end()) return refuse_cudnn(CUDNN_STATUS_BAD_PARAM, "an operand has no pointer");
    found.push_back(pointers[static_cast<std::size_t>(place - ids.begin())]);
    if (const cudnnStatus_t status = check_tensor(*tensor, found.back()); status != CUDNN_STATUS_SUCCESS) return status;
  }
  const Engine& engine = *plan->engine;
  const cudnnStatus_t status = check_workspace(workspace, engine.workspace_bytes);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const CudnnTensor& tensor = *convolution.tensors()[i];
    if (share_memory(found[i], tensor.bytes(), workspace, engine.workspace_bytes)) {
      return refuse_cudnn(CUDNN_STATUS_BAD_PARAM, "the workspace is part of an operand");
    }
  }
  if (engine.refuses == Refuses::to_run) return refuse_cudnn(CUDNN_STATUS_EXECUTION_FAILED, "the engine cannot run");
  const cudaError_t queued = call([&] {
    return gpu().queue(context->stream, [convolution, engine, workspace, found] {
      std::fill_n(workspace, engine.workspace_bytes, std::byte{0xA5});
      compute(convolution, {found[0], found[1], found[2]}, engine.rounding);
      gpu().spend(engine.milliseconds(convolution));
      return cudaSuccess;
    });
  });
  return queued == cudaSuccess ? CUDNN_STATUS_SUCCESS
                               : refuse_cudnn(CUDNN_STATUS_EXECUTION_FAILED, "the stream takes no work");
}

}  // namespace

CudnnContext* find_context(cudnnHandle_t handle) {
  auto* const found = reinterpret_cast<CudnnContext*>(handle);
  return contexts().contains(found) ? found : nullptr;
}

cudnnStatus_t refuse_cudnn(cudnnStatus_t status, const char* why) {
  last_refusal() = why;
  return status;
}

}  // namespace lockstep::simulated

using namespace lockstep::simulated;

extern "C" {

std::size_t cudnnGetVersion() { return CUDNN_VERSION; }

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER:
      return "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER";
    case CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED:
      return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
    case CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE:
      return "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_EXECUTION_FAILED:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
      return "CUDNN_STATUS_BAD_PARAM";
  }
}

void cudnnGetLastErrorString(char* text, std::size_t size) {
  const std::lock_guard lock(mutex());
  std::snprintf(text, size, "%s", last_refusal().c_str());
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  const std::lock_guard lock(mutex());
  auto* const made = new CudnnContext{nullptr};
  contexts().insert(made);
  *handle = reinterpret_cast<cudnnHandle_t>(made);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  const std::lock_guard lock(mutex());
  CudnnContext* const found = find_context(handle);
  if (found == nullptr) return refuse_cudnn(CUDNN_STATUS_BAD_PARAM, "there is no such handle");
  contexts().erase(found);
  delete found;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  const std::lock_guard lock(mutex());
  CudnnContext* const found = find_context(handle);
  if (found == nullptr || gpu().find(stream) == nullptr) {
    return refuse_cudnn(CUDNN_STATUS_BAD_PARAM, "there is no such handle or stream");
  }
  found->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  const std::lock_guard lock(mutex());
  return execute(find_context(handle), find_descriptor(plan), find_descriptor(pack));
}

}  // extern "C"
