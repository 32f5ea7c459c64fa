// The descriptors of cuDNN's backend API in the simulated library.
#pragma once

#include <cudnn_graph.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace lockstep::simulated {

struct Convolution;
struct Engine;

// What an attribute holds: `count` values of one type.
struct Attribute {
  cudnnBackendAttributeType_t type;
  std::int64_t count;
  std::vector<std::byte> bytes;
};

// What cudnnBackendDescriptor_t points to.
struct CudnnDescriptor {
  cudnnBackendDescriptorType_t type;
  bool is_final = false;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes;
  std::shared_ptr<const Convolution> convolution;  // of a finalized operation, and of what was made from it
  const Engine* engine = nullptr;                  // of a finalized plan

  bool has(cudnnBackendAttributeName_t name) const { return attributes.contains(name); }
  // The first value. The attribute is set; finalize() has checked that.
  template <typename Value>
  Value value(cudnnBackendAttributeName_t name) const {
    return values<Value>(name).front();
  }
  template <typename Value>
  std::vector<Value> values(cudnnBackendAttributeName_t name) const {
    const Attribute& attribute = attributes.at(name);
    std::vector<Value> found(static_cast<std::size_t>(attribute.count));
    if (!found.empty()) std::memcpy(found.data(), attribute.bytes.data(), attribute.bytes.size());
    return found;
  }
  const CudnnDescriptor& part(cudnnBackendAttributeName_t name) const { return *value<const CudnnDescriptor*>(name); }

  template <typename Value>
  void put(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t of_type, const std::vector<Value>& all) {
    const auto bytes = std::as_bytes(std::span(all));
    attributes[name] = {of_type, static_cast<std::int64_t>(all.size()), {bytes.begin(), bytes.end()}};
  }
};

CudnnDescriptor* make_descriptor(cudnnBackendDescriptorType_t type);
// Null unless the handle is a descriptor that exists.
CudnnDescriptor* find_descriptor(const void* handle);

// What cudnnHandle_t points to.
struct CudnnContext {
  cudaStream_t stream;
};
CudnnContext* find_context(cudnnHandle_t handle);  // null unless it exists

// Keeps the sentence for cudnnGetLastErrorString().
cudnnStatus_t refuse_cudnn(cudnnStatus_t status, const char* why);

// The attributes without which a descriptor cannot be finalized. Operations: x, weight, y, convolution, alpha, beta.
std::vector<cudnnBackendAttributeName_t> required_attributes(cudnnBackendDescriptorType_t type);

// Checks a descriptor whose attributes have been set, and derives what it is used for. Defined in cudnn_finalize.cpp.
cudnnStatus_t finalize(CudnnDescriptor& descriptor);
// The engine configurations that the heuristics return, into descriptors of the caller. Defined in cudnn_engines.cpp.
std::int64_t count_results(const CudnnDescriptor& heuristics);
void fill_result(const CudnnDescriptor& heuristics, std::int64_t index, CudnnDescriptor& config);

}  // namespace lockstep::simulated
