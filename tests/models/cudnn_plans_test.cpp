// Plans that cuDNN makes on a machine without a GPU, for the convolutions of all models on an H200. Nothing is run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "device/cuda/conv/allowed_candidates.hpp"
#include "device/cuda/conv/folded_conv.hpp"
#include "models/model_zoo.hpp"
#include "support/gpu/gpu_description.hpp"

namespace lockstep::cudnn_plans_test {
namespace {

using namespace cuda;

// After NVIDIA's published data. A description that cuDNN has exported on a GPU has the same fields.
constexpr const char* h200 = R"({"deviceVer": 900, "driverVer": 13000, "cudaDeviceId": 0,
  "totalGlobalMem": 150754820096, "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
  "regsPerBlock": 65536, "multiProcessorCount": 132, "warpSize": 32, "maxSharedMemoryPerBlock": 49152,
  "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536,
  "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0,
  "supportCoopLaunch": 1, "smClockRateKHz": 1980000, "memClockRateKHz": 3201000, "l2CacheSize": 62914560,
  "deviceName": "NVIDIA H200"})";

// Operands and products of a training: --precision and --tf32.
struct Arithmetic {
  DType precision;
  Products products;
};

// As CudaOps passes them to cuDNN: forward, backward-weight and, but for the input's convolution, backward-data, which
// may add to a residual's gradient.
void add_problems(const NetworkGraph& graph, std::int64_t samples, DType precision, std::set<ConvProblem>& problems) {
  for (const GraphNode& node : graph.nodes()) {
    const auto* const one = node.as<op::Convolution>();
    if (one == nullptr) continue;
    const bool reads_images = node.inputs.front() == 0;
    const ValueShape& in = graph.node(node.inputs.front()).shape;
    const auto add = [&](Direction direction, Accumulate accumulate) {
      const ConvProblem problem{direction, one->conv, samples,
                                in.height, in.width,  reads_images ? Layout::images : Layout::features,
                                precision, accumulate};
      problems.insert(can_fold(problem) ? folded(problem) : problem);
    };
    add(Direction::forward, Accumulate::overwrite);
    add(Direction::backward_weight, Accumulate::overwrite);
    if (reads_images) continue;
    add(Direction::backward_data, Accumulate::overwrite);
    add(Direction::backward_data, Accumulate::add);
  }
}

std::set<ConvProblem> problems_of_all_models(DType precision) {
  std::set<ConvProblem> problems;
  for (const std::string& name : model_names()) {
    const bool is_residual = name.starts_with("resnet");
    const SampleShape small = name == "convnet" ? SampleShape{28, 28, 1} : SampleShape{32, 32, 3};
    add_problems(model_graph({name, small, 10}), 128, precision, problems);
    if (!is_residual) continue;
    add_problems(model_graph({with_blur(name), small, 10}), 128, precision, problems);
    if (name == "resnet20") continue;
    add_problems(model_graph({name, {224, 224, 3}, 1000}), 256, precision, problems);
    add_problems(model_graph({with_blur(name), {224, 224, 3}, 1000}), 256, precision, problems);
  }
  return problems;
}

// The first plans with at most `max_bytes` of workspace, at most `most`.
struct Found {
  std::unique_ptr<ConvolutionPlan> plan;
  EngineNotes notes;
};
std::vector<Found> first_plans(const ConvolutionGraph& graph, DType precision, Products products,
                               Determinism determinism, std::int64_t max_bytes, std::size_t most) {
  std::vector<Found> found;
  for (const auto& candidate : allowed_candidates(graph, precision, products, determinism)) {
    if (found.size() == most) break;
    std::unique_ptr<ConvolutionPlan> plan = graph.compile(candidate);
    if (plan != nullptr && plan->workspace_bytes() <= max_bytes) found.push_back({std::move(plan), candidate.notes});
  }
  return found;
}

// As a line of a kept plan.
void expect_rebuilt(const ConvolutionGraph& graph, const ConvolutionPlan& plan) {
  const std::optional<EngineChoice> kept = EngineChoice::parse(plan.choice().text());
  ASSERT_TRUE(kept.has_value()) << plan.choice().text();
  const std::unique_ptr<ConvolutionPlan> rebuilt = graph.compile(*kept);
  ASSERT_NE(rebuilt, nullptr) << plan.choice().text();
  EXPECT_EQ(rebuilt->choice(), plan.choice());
  EXPECT_EQ(rebuilt->workspace_bytes(), plan.workspace_bytes()) << plan.choice().text();
}

class CudnnPlans : public ::testing::TestWithParam<Arithmetic> {
 protected:
  // Two plans to choose from, and one that gives the same bits in every run.
  void expect_plans(const ConvProblem& problem) {
    SCOPED_TRACE(problem.text());
    const auto [precision, products] = GetParam();
    const ConvolutionGraph graph(target_, problem);
    const std::vector<Found> fast = first_plans(graph, precision, products, Determinism::any, max_workspace_bytes, 2);
    EXPECT_EQ(fast.size(), 2);
    for (const Found& one : fast) expect_rebuilt(graph, *one.plan);
    const std::vector<Found> same =
        first_plans(graph, precision, products, Determinism::deterministic, deterministic_workspace_bytes, 1);
    ASSERT_EQ(same.size(), 1);
    EXPECT_FALSE(same.front().notes.nondeterministic);
    expect_rebuilt(graph, *same.front().plan);
    if (precision == DType::f32) return;
    if (!same.front().notes.tensor_cores) without_tensor_cores_.insert(problem.text());
  }

  const PlanTarget target_{std::string(h200)};
  std::set<std::string> without_tensor_cores_;
};

TEST_P(CudnnPlans, a_layer_of_resnet50_has_them) {
  for (const Direction direction : {Direction::forward, Direction::backward_data, Direction::backward_weight}) {
    expect_plans({direction,
                  {.in_channels = 64, .out_channels = 64, .kernel = 3, .padding = 1},
                  256,
                  56,
                  56,
                  Layout::features,
                  GetParam().precision});
  }
  EXPECT_EQ(without_tensor_cores_, std::set<std::string>());
}

TEST_P(CudnnPlans, all_models_have_them) {
  const std::set<ConvProblem> problems = problems_of_all_models(GetParam().precision);
  EXPECT_GT(problems.size(), 300);
  for (const ConvProblem& problem : problems) expect_plans(problem);
  EXPECT_EQ(without_tensor_cores_, std::set<std::string>());
}

TEST(CudnnPlansTarget, a_description_must_be_readable) { EXPECT_THROW(PlanTarget(std::string("no JSON")), Error); }

// describe_gpu writes what a GPU has; here it is the description itself.
TEST(CudnnPlansTarget, a_description_can_be_written_again) {
  cuda::Descriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  const std::string given(h200);
  properties.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, std::ssize(given), given.data())
      .finalize();
  const std::string written = gpu_description(properties);
  EXPECT_THAT(written, ::testing::HasSubstr("NVIDIA H200"));
  const ConvProblem problem{Direction::forward,
                            {.in_channels = 64, .out_channels = 64, .kernel = 3, .padding = 1},
                            256,
                            56,
                            56,
                            Layout::features,
                            DType::bf16};
  EXPECT_EQ(ConvolutionGraph(PlanTarget(written), problem).candidates().size(),
            ConvolutionGraph(PlanTarget(given), problem).candidates().size());
}

INSTANTIATE_TEST_SUITE_P(
    , CudnnPlans,
    ::testing::Values(Arithmetic{DType::f32, Products::fp32}, Arithmetic{DType::f32, Products::tf32},
                      Arithmetic{DType::bf16, Products::fp32}, Arithmetic{DType::f16, Products::fp32}),
    [](const auto& test) {
      return std::string(name_of(test.param.precision)) + (test.param.products == Products::tf32 ? "_tf32" : "");
    });

}  // namespace
}  // namespace lockstep::cudnn_plans_test
