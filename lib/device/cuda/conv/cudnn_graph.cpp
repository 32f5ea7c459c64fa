// Builds a cuDNN operation graph of one convolution. The order of calls and the attributes of each descriptor follow
// NVIDIA's "cuDNN Backend API" reference.
#include "device/cuda/conv/cudnn_graph.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "device/cuda/check_cuda.hpp"
#include "device/cuda/layout/cuda_layout.hpp"

namespace lockstep::cuda {
namespace {

enum Operand : std::int64_t { first_id = 1, second_id = 2, third_id = 3 };

cudnnDataType_t type_of(DType dtype) {
  return dtype == DType::bf16 ? CUDNN_DATA_BFLOAT16 : dtype == DType::f16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
}

// Dimensions [n, c, h, w]; channels are innermost in memory (NHWC).
Descriptor tensor(Operand id, DType dtype, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
  const cudnnDataType_t type = type_of(dtype);
  constexpr std::int64_t alignment = 16;  // bytes; parameters are aligned to 16 elements, all else to cache lines
  Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::array{n, c, h, w})
      .set(CUDNN_ATTR_TENSOR_STRIDES, std::array{h * w * c, std::int64_t{1}, w * c, c})
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
  made.finalize();
  return made;
}

Descriptor convolution(const Conv2d& conv) {
  const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const std::array padding{conv.padding.height, conv.padding.width};
  Descriptor made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  made.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2})
      .set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode)
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, padding)
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, padding)
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, std::array<std::int64_t, 2>{1, 1})
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::array{conv.stride.height, conv.stride.width});
  made.finalize();
  return made;
}

// Names of the attributes of one direction's operation.
struct OperationNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t x, weight, y, convolution, alpha, beta;
};

OperationNames names_of(Direction direction) {
  switch (direction) {
    case Direction::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case Direction::backward_data:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Direction::backward_weight:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

// Tensor ids, by position in the operands of a ConvProblem.
struct Ids {
  Operand x, weight, y;
};
Ids ids_of(Direction direction) {
  switch (direction) {
    case Direction::forward:
      return {first_id, second_id, third_id};
    case Direction::backward_data:
      return {third_id, second_id, first_id};
    case Direction::backward_weight:
      break;
  }
  return {first_id, third_id, second_id};
}

Descriptor operation(const ConvProblem& problem) {
  const Conv2d& conv = problem.conv;
  const std::int64_t in = padded(conv.in_channels);
  const std::int64_t out = padded(conv.out_channels);
  const Ids ids = ids_of(problem.direction);
  const std::int64_t out_h = conv.rows().out_size(problem.h);
  const std::int64_t out_w = conv.columns().out_size(problem.w);
  const DType type = problem.precision;
  const OperationNames names = names_of(problem.direction);
  constexpr float alpha = 1;
  const float beta = problem.accumulate == Accumulate::add ? 1 : 0;
  Descriptor made(names.operation);
  made.set(names.x, tensor(ids.x, type, problem.n, in, problem.h, problem.w))
      .set(names.weight, tensor(ids.weight, type, out, in, conv.kernel.height, conv.kernel.width))
      .set(names.y, tensor(ids.y, type, problem.n, out, out_h, out_w))
      .set(names.convolution, convolution(conv))
      .set(names.alpha, CUDNN_TYPE_FLOAT, 1, &alpha)
      .set(names.beta, CUDNN_TYPE_FLOAT, 1, &beta);
  made.finalize();
  return made;
}

Descriptor graph_of(const PlanTarget& target, const ConvProblem& problem) {
  Descriptor made(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  target.set_in_graph(made);
  made.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation(problem));
  made.finalize();
  return made;
}

// The caller creates the descriptor; cuDNN fills it in.
Descriptor engine_of(const Descriptor& config) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t handle = engine.get();
  config.read(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &handle);
  return engine;
}

EngineChoice choice_of(const Descriptor& config, const Descriptor& engine) {
  EngineChoice choice{engine.number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX), {}};
  for (const Descriptor& knob : config.children(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                                                CUDNN_KNOB_TYPE_COUNTS)) {
    cudnnBackendKnobType_t type{};
    knob.read(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
    choice.knobs.push_back({static_cast<std::int64_t>(type), knob.number(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE)});
  }
  return choice;
}

EngineNotes notes_of(const Descriptor& engine) {
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  notes.resize(static_cast<std::size_t>(engine.read(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                                    CUDNN_NUMERICAL_NOTE_TYPE_COUNT, notes.data())));
  const auto has = [&](cudnnBackendNumericalNote_t note) { return std::ranges::find(notes, note) != notes.end(); };
  return {has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE), has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS),
          has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION), has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)};
}

}  // namespace

ConvolutionPlan::ConvolutionPlan(Descriptor plan, EngineChoice choice)
    : plan_(std::move(plan)),
      choice_(std::move(choice)),
      workspace_bytes_(plan_.number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)) {}

void ConvolutionPlan::run(cudnnHandle_t handle, std::span<std::byte* const, 3> operands, std::byte* workspace) const {
  check_cudnn(try_run(handle, operands, workspace), "run a convolution");
}

cudnnStatus_t ConvolutionPlan::try_run(cudnnHandle_t handle, std::span<std::byte* const, 3> operands,
                                       std::byte* workspace) const {
  std::array<void*, 3> pointers{operands[0], operands[1], operands[2]};
  void* const memory = workspace;
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::array<std::int64_t, 3>{first_id, second_id, third_id})
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, pointers.data())
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &memory);
  pack.finalize();
  return cudnnBackendExecute(handle, plan_.get(), pack.get());
}

ConvolutionGraph::ConvolutionGraph(const PlanTarget& target, const ConvProblem& problem)
    : target_(target), graph_(graph_of(target, problem)) {}

void ConvolutionGraph::add_candidates(cudnnBackendHeurMode_t mode, std::vector<Candidate>& candidates) const {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph_)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  target_.set_in_heuristics(heuristics);
  if (heuristics.try_finalize() != CUDNN_STATUS_SUCCESS) return;  // this heuristic mode does not support such a graph
  const std::int64_t count = heuristics.count(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  if (count == 0) return;
  for (const Descriptor& config :
       heuristics.children(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, count)) {
    const Descriptor engine = engine_of(config);
    EngineChoice choice = choice_of(config, engine);
    const bool known = std::ranges::any_of(candidates, [&](const Candidate& one) { return one.choice == choice; });
    if (!known) candidates.push_back({config, std::move(choice), notes_of(engine)});
  }
}

std::vector<ConvolutionGraph::Candidate> ConvolutionGraph::candidates() const {
  std::vector<Candidate> found;
  add_candidates(CUDNN_HEUR_MODE_A, found);
  add_candidates(CUDNN_HEUR_MODE_FALLBACK, found);
  return found;
}

std::unique_ptr<ConvolutionPlan> ConvolutionGraph::compile(const Descriptor& config, const EngineChoice& choice) const {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  target_.set_in_plan(plan);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config).keep(graph_);
  if (plan.try_finalize() != CUDNN_STATUS_SUCCESS) return nullptr;
  return std::make_unique<ConvolutionPlan>(std::move(plan), choice);
}

std::unique_ptr<ConvolutionPlan> ConvolutionGraph::compile(const Candidate& candidate) const {
  return compile(candidate.config, candidate.choice);
}

std::unique_ptr<ConvolutionPlan> ConvolutionGraph::compile(const EngineChoice& choice) const {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph_).set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, choice.engine);
  target_.set_in_engine(engine);
  if (engine.try_finalize() != CUDNN_STATUS_SUCCESS) return nullptr;
  std::vector<Descriptor> knobs;
  for (const EngineChoice::Knob& knob : choice.knobs) {
    const auto type = static_cast<cudnnBackendKnobType_t>(knob.type);
    Descriptor& made = knobs.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    made.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type)
        .set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, knob.value);
    if (made.try_finalize() != CUDNN_STATUS_SUCCESS) return nullptr;
  }
  Descriptor config(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  config.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  if (!knobs.empty()) config.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, std::span<const Descriptor>(knobs));
  if (config.try_finalize() != CUDNN_STATUS_SUCCESS) return nullptr;
  return compile(config, choice);
}

}  // namespace lockstep::cuda
