// What each descriptor of the simulated cuDNN needs before it is used, and what it then means.
#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <utility>

#include "support/simulated_gpu/descriptor.hpp"
#include "support/simulated_gpu/engines.hpp"
#include "support/simulated_gpu/gpu.hpp"

namespace lockstep::simulated {
namespace {

using Names = std::vector<cudnnBackendAttributeName_t>;

bool has_unfinished_part(const CudnnDescriptor& descriptor) {
  for (const auto& [name, attribute] : descriptor.attributes) {
    if (attribute.type != CUDNN_TYPE_BACKEND_DESCRIPTOR) continue;
    for (const auto* handle : descriptor.values<const void*>(name)) {
      const CudnnDescriptor* const part = find_descriptor(handle);
      if (part == nullptr || !part->is_final) return true;
    }
  }
  return false;
}

// Elements must not share memory.
bool overlaps(const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& strides) {
  std::vector<std::pair<std::int64_t, std::int64_t>> by_stride;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] > 1) by_stride.emplace_back(strides[i], dims[i]);
  }
  std::ranges::sort(by_stride);
  std::int64_t extent = 0;
  for (const auto& [stride, dim] : by_stride) {
    if (stride <= extent) return true;
    extent += stride * (dim - 1);
  }
  return false;
}

cudnnStatus_t finalize_tensor(const CudnnDescriptor& tensor) {
  const auto dims = tensor.values<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const auto strides = tensor.values<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  const auto type = tensor.value<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
  if (dims.size() != 4 || strides.size() != 4 || std::ranges::min(dims) < 1) {
    return refuse_cudnn(CUDNN_STATUS_BAD_PARAM, "a tensor here has four dimensions and strides");
  }
  if (overlaps(dims, strides)) return refuse_cudnn(CUDNN_STATUS_BAD_PARAM, "elements of a tensor share memory");
  const bool is_known = type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16;
  return is_known ? CUDNN_STATUS_SUCCESS : refuse_cudnn(CUDNN_STATUS_NOT_SUPPORTED, "no engine knows this type");
}

cudnnStatus_t finalize_convolution(const CudnnDescriptor& made) {
  const auto is_pair = [&](cudnnBackendAttributeName_t name) { return made.attributes.at(name).count == 2; };
  const bool is_flat = made.value<std::int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) == 2 &&
                       is_pair(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS) && is_pair(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS) &&
                       is_pair(CUDNN_ATTR_CONVOLUTION_DILATIONS) && is_pair(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  if (!is_flat) return refuse_cudnn(CUDNN_STATUS_BAD_PARAM, "a convolution here has two spatial dimensions");
  const bool is_plain =
      made.value<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE) == CUDNN_DATA_FLOAT &&
      made.value<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) == CUDNN_CROSS_CORRELATION &&
      made.values<std::int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS) == std::vector<std::int64_t>{1, 1} &&
      made.values<std::int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS) ==
          made.values<std::int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  return is_plain ? CUDNN_STATUS_SUCCESS : refuse_cudnn(CUDNN_STATUS_NOT_SUPPORTED, "no engine computes this");
}

template <typename Values>
Values copied(const CudnnDescriptor& from, cudnnBackendAttributeName_t name) {
  Values values{};
  std::ranges::copy(from.values<std::int64_t>(name), values.begin());
  return values;
}

CudnnTensor tensor_of(const CudnnDescriptor& from) {
  using Four = std::array<std::int64_t, 4>;
  const Four dims = copied<Four>(from, CUDNN_ATTR_TENSOR_DIMENSIONS);
  const bool takes_for_nchw = gpu().settings().fault == Fault::wrong_stride;
  return {from.value<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID),
          from.value<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE), dims,
          takes_for_nchw ? Four{dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1}
                         : copied<Four>(from, CUDNN_ATTR_TENSOR_STRIDES),
          from.value<std::int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)};
}

cudnnStatus_t finalize_operation(CudnnDescriptor& operation) {
  const Names names = required_attributes(operation.type);
  const CudnnDescriptor& window = operation.part(names[3]);
  using Two = std::array<std::int64_t, 2>;
  const Convolution made{operation.type,
                         tensor_of(operation.part(names[0])),
                         tensor_of(operation.part(names[1])),
                         tensor_of(operation.part(names[2])),
                         copied<Two>(window, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
                         copied<Two>(window, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
                         operation.value<float>(names[4]),
                         operation.value<float>(names[5])};
  const auto& [x, weight, y] = std::tie(made.x.dims, made.weight.dims, made.y.dims);
  for (std::size_t side : {0, 1}) {
    const std::int64_t size = (x[2 + side] + 2 * made.padding[side] - weight[2 + side]) / made.stride[side] + 1;
    if (size != y[2 + side]) return refuse_cudnn(CUDNN_STATUS_BAD_PARAM, "y has another size than the convolution");
  }
  if (x[0] != y[0] || x[1] != weight[1] || y[1] != weight[0]) {
    return refuse_cudnn(CUDNN_STATUS_BAD_PARAM, "images or channels of the operands differ");
  }
  const std::set<std::int64_t> ids{made.x.id, made.weight.id, made.y.id};
  if (ids.size() != 3) return refuse_cudnn(CUDNN_STATUS_BAD_PARAM, "two operands have one id");
  if (made.x.type != made.y.type || made.x.type != made.weight.type) {
    return refuse_cudnn(CUDNN_STATUS_NOT_SUPPORTED, "types of the operands differ");
  }
  operation.convolution = std::make_shared<const Convolution>(made);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_config(CudnnDescriptor& config) {
  const CudnnDescriptor& described = config.part(CUDNN_ATTR_ENGINECFG_ENGINE);
  const Engine& engine = *find_engine(described.value<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  config.convolution = described.convolution;
  if (!config.has(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES)) return CUDNN_STATUS_SUCCESS;
  for (const auto* knob : config.values<const CudnnDescriptor*>(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES)) {
    const auto value = knob->value<std::int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
    const bool is_tile =
        knob->value<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE) == CUDNN_KNOB_TYPE_TILE_SIZE;
    if (!is_tile || value < 0 || value >= engine.tile_sizes) {
      return refuse_cudnn(CUDNN_STATUS_NOT_SUPPORTED, "the engine has no such knob, or not this value");
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_plan(CudnnDescriptor& plan) {
  const CudnnDescriptor& config = plan.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  if (has_unfinished_part(config)) return refuse_cudnn(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "the engine is gone");
  const CudnnDescriptor& described = config.part(CUDNN_ATTR_ENGINECFG_ENGINE);
  const Engine& engine = *find_engine(described.value<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  if (engine.refuses == Refuses::to_finalize) {
    return refuse_cudnn(CUDNN_STATUS_NOT_SUPPORTED, "the engine does not support the graph");
  }
  plan.convolution = config.convolution;
  plan.engine = &engine;
  plan.put(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, std::vector{engine.workspace_bytes});
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_by_type(CudnnDescriptor& made) {
  switch (made.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return finalize_tensor(made);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      return finalize_convolution(made);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      made.convolution = made.part(CUDNN_ATTR_OPERATIONGRAPH_OPS).convolution;
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
      made.convolution = made.part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH).convolution;
      if (find_engine(made.value<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX)) == nullptr) {
        return refuse_cudnn(CUDNN_STATUS_NOT_SUPPORTED, "there is no such engine");
      }
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
      return finalize_config(made);
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return finalize_plan(made);
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      made.convolution = made.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).convolution;
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR:
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return CUDNN_STATUS_SUCCESS;
    default:
      return finalize_operation(made);
  }
}

}  // namespace

cudnnStatus_t finalize(CudnnDescriptor& descriptor) {
  const Names names = required_attributes(descriptor.type);
  if (!std::ranges::all_of(names, [&](auto name) { return descriptor.has(name); })) {
    return refuse_cudnn(CUDNN_STATUS_BAD_PARAM, "an attribute is not set");
  }
  if (has_unfinished_part(descriptor)) {
    return refuse_cudnn(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "a part is not finalized");
  }
  const cudnnStatus_t status = finalize_by_type(descriptor);
  descriptor.is_final = status == CUDNN_STATUS_SUCCESS;
  return status;
}

}  // namespace lockstep::simulated
