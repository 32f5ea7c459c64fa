// Descriptors of the simulated cuDNN and their attributes.
#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <string>

#include "support/simulated_gpu/descriptor.hpp"
#include "support/simulated_gpu/gpu.hpp"

namespace lockstep::simulated {
namespace {

std::set<CudnnDescriptor*>& descriptors() {
  static auto* const all = new std::set<CudnnDescriptor*>;
  return *all;
}

cudnnBackendAttributeType_t type_of(cudnnBackendAttributeName_t name) {
  switch (name) {
    case CUDNN_ATTR_TENSOR_DATA_TYPE:
    case CUDNN_ATTR_CONVOLUTION_COMP_TYPE:
      return CUDNN_TYPE_DATA_TYPE;
    case CUDNN_ATTR_CONVOLUTION_CONV_MODE:
      return CUDNN_TYPE_CONVOLUTION_MODE;
    case CUDNN_ATTR_ENGINEHEUR_MODE:
      return CUDNN_TYPE_HEUR_MODE;
    case CUDNN_ATTR_OPERATIONGRAPH_HANDLE:
    case CUDNN_ATTR_EXECUTION_PLAN_HANDLE:
      return CUDNN_TYPE_HANDLE;
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE:
      return CUDNN_TYPE_KNOB_TYPE;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      return CUDNN_TYPE_NUMERICAL_NOTE;
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA:
      return CUDNN_TYPE_FLOAT;
    case CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS:
    case CUDNN_ATTR_VARIANT_PACK_WORKSPACE:
      return CUDNN_TYPE_VOID_PTR;
    case CUDNN_ATTR_TENSOR_DIMENSIONS:
    case CUDNN_ATTR_TENSOR_STRIDES:
    case CUDNN_ATTR_TENSOR_UNIQUE_ID:
    case CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT:
    case CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS:
    case CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS:
    case CUDNN_ATTR_CONVOLUTION_POST_PADDINGS:
    case CUDNN_ATTR_CONVOLUTION_DILATIONS:
    case CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES:
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE:
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
    case CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS:
      return CUDNN_TYPE_INT64;
    default:
      return CUDNN_TYPE_BACKEND_DESCRIPTOR;
  }
}

std::size_t size_of_value(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;  // enumerators and floats
  }
}

bool may_set(cudnnBackendDescriptorType_t type, cudnnBackendAttributeName_t name) {
  const std::vector<cudnnBackendAttributeName_t> names = required_attributes(type);
  const bool is_knobs = type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR && name == CUDNN_ATTR_ENGINECFG_KNOB_CHOICES;
  return is_knobs || std::ranges::find(names, name) != names.end();
}

// The results of heuristics are computed, everything else has been put.
std::int64_t count_of(const CudnnDescriptor& descriptor, cudnnBackendAttributeName_t name) {
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) return count_results(descriptor);
  return descriptor.has(name) ? descriptor.attributes.at(name).count : 0;
}

// Into a descriptor that the caller has created.
cudnnStatus_t fill_part(const CudnnDescriptor& from, cudnnBackendAttributeName_t name, std::int64_t index, void* to) {
  CudnnDescriptor* const filled = find_descriptor(to);
  if (filled == nullptr) return refuse_cudnn(CUDNN_STATUS_BAD_PARAM, "there is no descriptor to fill in");
  const bool is_result = name == CUDNN_ATTR_ENGINEHEUR_RESULTS;
  const CudnnDescriptor* const part =
      is_result ? nullptr : find_descriptor(from.values<void*>(name)[static_cast<std::size_t>(index)]);
  const cudnnBackendDescriptorType_t type = is_result ? CUDNN_BACKEND_ENGINECFG_DESCRIPTOR : part->type;
  if (filled->type != type) return refuse_cudnn(CUDNN_STATUS_BAD_PARAM, "the descriptor has another type");
  if (is_result) {
    fill_result(from, index, *filled);
  } else {
    *filled = *part;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t set(CudnnDescriptor* descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  std::int64_t count, const void* values) {
  if (descriptor == nullptr) return refuse_cudnn(CUDNN_STATUS_BAD_PARAM, "there is no such descriptor");
  if (descriptor->is_final) return refuse_cudnn(CUDNN_STATUS_NOT_INITIALIZED, "the descriptor is finalized");
  if (!may_set(descriptor->type, name)) return refuse_cudnn(CUDNN_STATUS_BAD_PARAM, "it has no such attribute");
  if (type != type_of(name)) return refuse_cudnn(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "of another type");
  if (count < 1 || values == nullptr) return refuse_cudnn(CUDNN_STATUS_BAD_PARAM, "an attribute without values");
  const auto* const first = static_cast<const std::byte*>(values);
  descriptor->attributes[name] = {type, count, {first, first + static_cast<std::size_t>(count) * size_of_value(type)}};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t get(const CudnnDescriptor* descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  std::int64_t most, std::int64_t* count, void* values) {
  if (descriptor == nullptr) return refuse_cudnn(CUDNN_STATUS_BAD_PARAM, "there is no such descriptor");
  if (!descriptor->is_final) return refuse_cudnn(CUDNN_STATUS_NOT_INITIALIZED, "the descriptor is not finalized");
  if (type != type_of(name)) return refuse_cudnn(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "of another type");
  *count = count_of(*descriptor, name);
  if (values == nullptr) return CUDNN_STATUS_SUCCESS;
  const std::int64_t read = std::min(most, *count);
  if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    if (read > 0) {
      std::memcpy(values, descriptor->attributes.at(name).bytes.data(),
                  static_cast<std::size_t>(read) * size_of_value(type));
    }
    return CUDNN_STATUS_SUCCESS;
  }
  for (std::int64_t i = 0; i < read; ++i) {
    const cudnnStatus_t status = fill_part(*descriptor, name, i, static_cast<void**>(values)[i]);
    if (status != CUDNN_STATUS_SUCCESS) return status;
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

CudnnDescriptor* make_descriptor(cudnnBackendDescriptorType_t type) {
  auto* const made = new CudnnDescriptor{.type = type, .attributes = {}, .convolution = {}};
  descriptors().insert(made);
  return made;
}

CudnnDescriptor* find_descriptor(const void* handle) {
  auto* const found = static_cast<CudnnDescriptor*>(const_cast<void*>(handle));
  return descriptors().contains(found) ? found : nullptr;
}

std::vector<cudnnBackendAttributeName_t> required_attributes(cudnnBackendDescriptorType_t type) {
  switch (type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_ATTR_TENSOR_STRIDES,
              CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT};
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      return {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,  CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
              CUDNN_ATTR_CONVOLUTION_CONV_MODE,     CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS,
              CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_ATTR_CONVOLUTION_DILATIONS,
              CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES};
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_ATTR_OPERATIONGRAPH_OPS};
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return {CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_ATTR_ENGINEHEUR_MODE};
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
      return {CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_ATTR_ENGINE_GLOBAL_INDEX};
    case CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR:
      return {CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE};
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
      return {CUDNN_ATTR_ENGINECFG_ENGINE};
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return {CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG};
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return {CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
              CUDNN_ATTR_VARIANT_PACK_WORKSPACE};
    default:
      return {};
  }
}

}  // namespace lockstep::simulated

using namespace lockstep::simulated;

extern "C" {

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* made) {
  const std::lock_guard lock(mutex());
  if (required_attributes(type).empty()) {
    return refuse_cudnn(CUDNN_STATUS_NOT_SUPPORTED, "the simulation does not know this descriptor");
  }
  *made = make_descriptor(type);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t handle) {
  const std::lock_guard lock(mutex());
  CudnnDescriptor* const found = find_descriptor(handle);
  if (found == nullptr) return refuse_cudnn(CUDNN_STATUS_BAD_PARAM, "there is no such descriptor");
  descriptors().erase(found);
  delete found;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count, const void* values) {
  const std::lock_guard lock(mutex());
  return set(find_descriptor(handle), name, type, count, values);
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const handle, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t most, std::int64_t* count,
                                       void* values) {
  const std::lock_guard lock(mutex());
  return get(find_descriptor(handle), name, type, most, count, values);
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t handle) {
  const std::lock_guard lock(mutex());
  CudnnDescriptor* const found = find_descriptor(handle);
  if (found == nullptr) return refuse_cudnn(CUDNN_STATUS_BAD_PARAM, "there is no such descriptor");
  return finalize(*found);
}

}  // extern "C"
