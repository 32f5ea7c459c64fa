// RAII wrappers for cuDNN's handle and for the descriptors of its backend API.
#pragma once

#include <cudnn_graph.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace lockstep::cuda {

struct DestroyCudnn {
  void operator()(cudnnHandle_t handle) const noexcept { cudnnDestroy(handle); }
};
using CudnnHandle = std::unique_ptr<cudnnContext, DestroyCudnn>;
CudnnHandle make_cudnn_handle(cudaStream_t stream);

// A handle; copies share the descriptor. Set all attributes, then finalize, then use. Descriptors that an attribute
// refers to live as long as this one: cuDNN's reference does not say that it copies them.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);

  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                  const void* values);
  Descriptor& set(cudnnBackendAttributeName_t name, std::int64_t value);
  Descriptor& set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values);
  Descriptor& set(cudnnBackendAttributeName_t name, std::span<const Descriptor> values);
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& value);
  void finalize();
  // Returns cuDNN's status if "not supported" is an acceptable answer.
  cudnnStatus_t try_finalize() { return cudnnBackendFinalize(get()); }

  // Number of values of an attribute.
  std::int64_t count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const;
  // Reads up to `most` values; returns how many the attribute has.
  std::int64_t read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t most,
                    void* values) const;
  std::int64_t number(cudnnBackendAttributeName_t name) const;
  // Descriptors of one type that an attribute refers to, at most `most`.
  std::vector<Descriptor> children(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                   std::int64_t most) const;

  // Keeps `part` alive as long as this descriptor.
  void keep(const Descriptor& part) { parts_.push_back(part); }
  cudnnBackendDescriptor_t get() const { return descriptor_.get(); }

 private:
  std::shared_ptr<void> descriptor_;
  std::vector<Descriptor> parts_;
};

}  // namespace lockstep::cuda
