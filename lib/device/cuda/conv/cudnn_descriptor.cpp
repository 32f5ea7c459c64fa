#include "device/cuda/conv/cudnn_descriptor.hpp"

#include <algorithm>

#include "device/cuda/check_cuda.hpp"

namespace lockstep::cuda {

CudnnHandle make_cudnn_handle(cudaStream_t stream) {
  cudnnHandle_t handle = nullptr;
  check_cudnn(cudnnCreate(&handle), "start");
  CudnnHandle owner(handle);
  check_cudnn(cudnnSetStream(handle, stream), "take a stream");
  return owner;
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t descriptor = nullptr;
  check_cudnn(cudnnBackendCreateDescriptor(type, &descriptor), "create a descriptor");
  descriptor_.reset(descriptor, [](void* made) { static_cast<void>(cudnnBackendDestroyDescriptor(made)); });
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                            const void* values) {
  check_cudnn(cudnnBackendSetAttribute(get(), name, type, count, values), "set an attribute");
  return *this;
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, std::int64_t value) {
  return set(name, CUDNN_TYPE_INT64, 1, &value);
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
  return set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, std::span<const Descriptor> values) {
  std::vector<cudnnBackendDescriptor_t> handles;
  for (const Descriptor& value : values) {
    handles.push_back(value.get());
    keep(value);
  }
  return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(handles.size()), handles.data());
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& value) {
  return set(name, std::span(&value, 1));
}

void Descriptor::finalize() { check_cudnn(try_finalize(), "accept a descriptor"); }

std::int64_t Descriptor::count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const {
  std::int64_t count = 0;
  check_cudnn(cudnnBackendGetAttribute(get(), name, type, 0, &count, nullptr), "count an attribute's values");
  return count;
}

std::int64_t Descriptor::read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t most,
                              void* values) const {
  std::int64_t count = 0;
  check_cudnn(cudnnBackendGetAttribute(get(), name, type, most, &count, values), "read an attribute");
  return std::min(count, most);
}

std::int64_t Descriptor::number(cudnnBackendAttributeName_t name) const {
  std::int64_t value = 0;
  read(name, CUDNN_TYPE_INT64, 1, &value);
  return value;
}

std::vector<Descriptor> Descriptor::children(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                             std::int64_t most) const {
  // The caller creates the descriptors; cuDNN fills them in.
  std::vector<Descriptor> made;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (std::int64_t i = 0; i < most; ++i) handles.push_back(made.emplace_back(type).get());
  const std::int64_t filled = read(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, handles.data());
  made.erase(made.begin() + filled, made.end());
  return made;
}

}  // namespace lockstep::cuda
