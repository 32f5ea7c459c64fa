// What the simulated cuDNN refuses. That its convolutions are right is tested by the tests of devices.
#include <array>

#include "device/cuda/conv/cudnn_graph.hpp"
#include "support/simulated_gpu/simulated_fixture.hpp"

namespace lockstep::simulated {
namespace {

using cuda::Descriptor;

class SimulatedCudnnTest : public SimulatedRuntimeTest {
 protected:
  static cudnnStatus_t try_set(const Descriptor& descriptor, cudnnBackendAttributeName_t name,
                               cudnnBackendAttributeType_t type, const void* value) {
    return cudnnBackendSetAttribute(descriptor.get(), name, type, 1, value);
  }

  static Descriptor tensor(const std::array<std::int64_t, 4>& dims, const std::array<std::int64_t, 4>& strides) {
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type)
        .set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims)
        .set(CUDNN_ATTR_TENSOR_STRIDES, strides)
        .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, std::int64_t{1})
        .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16});
    return made;
  }

  // A convolution of 8 to 8 channels with one pixel, by the engine that has a workspace.
  cudnnStatus_t run(std::byte* x, std::byte* weight, std::byte* y, std::byte* workspace) {
    const cuda::CudnnHandle handle = cuda::make_cudnn_handle(main_);
    const ConvProblem problem{Direction::forward, {8, 8, 1}, 1, 1, 1, Layout::features, DType::f32};
    const auto plan =
        cuda::ConvolutionGraph(cuda::PlanTarget(handle.get()), problem).compile({3, {{CUDNN_KNOB_TYPE_TILE_SIZE, 2}}});
    return plan->try_run(handle.get(), std::array{x, weight, y}, workspace);
  }
};

TEST_F(SimulatedCudnnTest, an_attribute_has_one_type_and_is_set_before_the_end) {
  Descriptor made = tensor({1, 8, 2, 2}, {32, 1, 16, 8});
  const std::int64_t value = 1;
  EXPECT_EQ(try_set(made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT32, &value),
            CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
  EXPECT_EQ(try_set(made, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, &value), CUDNN_STATUS_BAD_PARAM);
  std::int64_t count = 0;
  EXPECT_EQ(cudnnBackendGetAttribute(made.get(), CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 0, &count, nullptr),
            CUDNN_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(made.try_finalize(), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(try_set(made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, &value), CUDNN_STATUS_NOT_INITIALIZED);
}

TEST_F(SimulatedCudnnTest, a_descriptor_needs_all_attributes_and_finalized_parts) {
  EXPECT_EQ(Descriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR).try_finalize(), CUDNN_STATUS_BAD_PARAM);
  Descriptor config(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  config.set(CUDNN_ATTR_ENGINECFG_ENGINE, Descriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR));
  EXPECT_EQ(config.try_finalize(), CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
}

TEST_F(SimulatedCudnnTest, elements_of_a_tensor_do_not_share_memory) {
  EXPECT_EQ(tensor({1, 8, 2, 2}, {32, 1, 8, 8}).try_finalize(), CUDNN_STATUS_BAD_PARAM);
}

TEST_F(SimulatedCudnnTest, an_engine_has_its_own_knobs) {
  const cuda::CudnnHandle handle = cuda::make_cudnn_handle(main_);
  const cuda::PlanTarget target(handle.get());
  const cuda::ConvolutionGraph graph(target, {Direction::forward, {8, 8, 1}, 1, 1, 1, Layout::features, DType::f32});
  EXPECT_NE(graph.compile({3, {{CUDNN_KNOB_TYPE_TILE_SIZE, 2}}}), nullptr);
  EXPECT_EQ(graph.compile({3, {{CUDNN_KNOB_TYPE_TILE_SIZE, 4}}}), nullptr);
  EXPECT_EQ(graph.compile({3, {{CUDNN_KNOB_TYPE_TILEK, 2}}}), nullptr);
  EXPECT_EQ(graph.compile({4, {}}), nullptr) << "its plan is not supported";
  EXPECT_EQ(graph.compile({99, {}}), nullptr) << "there is none";
}

TEST_F(SimulatedCudnnTest, operands_and_the_workspace_are_aligned_and_in_device_memory) {
  std::byte* const x = device_memory(32);
  std::byte* const weight = device_memory(256);
  std::byte* const y = device_memory(32);
  std::byte* const workspace = device_memory(2048);
  std::byte* const pinned = pinned_memory(32);
  EXPECT_EQ(run(x, weight, y, workspace), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(run(x, weight, y, workspace + 64), CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
  EXPECT_EQ(run(x, weight + 4, y, workspace), CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
  EXPECT_EQ(run(x, weight + 16, y, workspace), CUDNN_STATUS_BAD_PARAM) << "goes past its end";
  EXPECT_EQ(run(pinned, weight, y, workspace), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(run(x, weight, y, workspace + 1280), CUDNN_STATUS_BAD_PARAM) << "too small";
  EXPECT_EQ(run(x, weight, workspace, workspace), CUDNN_STATUS_BAD_PARAM) << "overlaps an operand";
}

}  // namespace
}  // namespace lockstep::simulated
