// Selection and timing of cuDNN engines, see convolution_engine.hpp.
#include "device/cuda/conv/convolution_engine.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>
#include <utility>

#include "base/log.hpp"
#include "device/cuda/check_cuda.hpp"
#include "device/cuda/conv/allowed_candidates.hpp"
#include "device/cuda/cuda_graph.hpp"
#include "device/cuda/layout/cuda_layout.hpp"
#include "device/cuda/side_stream.hpp"
#include "device/plan_line.hpp"

namespace lockstep::cuda {
namespace {

// The heuristics' order is good: later candidates are rarely the fastest. They list several knobs of an engine in a
// row.
constexpr int max_measured = 16;
constexpr int max_of_an_engine = 3;
constexpr int timed_runs = 3;
constexpr std::int64_t workspace_share = 4;  // a quarter of the free memory at most

std::int64_t bytes_of_dx(const ConvProblem& problem) {
  const Shape dx{problem.n, problem.h, problem.w, problem.conv.in_channels};
  return storage_count(dx, problem.input) * size_of(problem.precision);
}

struct PlanEntry {
  std::string problem;
  EngineChoice choice;
};

std::optional<PlanEntry> read_entry(const std::string& line) {
  const std::optional<PlanLine> parts = split_plan_line(line);
  if (!parts) return std::nullopt;
  std::optional<EngineChoice> choice = EngineChoice::parse(parts->kernel);
  if (!choice) return std::nullopt;
  return PlanEntry{std::string(parts->problem), std::move(*choice)};
}

}  // namespace

ConvolutionEngine::ConvolutionEngine(const LibraryContext& context)
    : context_(context), handle_(make_cudnn_handle(context.stream)), target_(handle_.get()) {}

void ConvolutionEngine::run(const ConvProblem& problem, std::span<std::byte* const, 3> operands) {
  auto found = chosen_.find(problem);
  if (found == chosen_.end()) found = chosen_.emplace(problem, choose(problem, operands)).first;
  execute(*found->second, operands);
}

void ConvolutionEngine::execute(const ConvolutionPlan& plan, std::span<std::byte* const, 3> operands) {
  const Tensor workspace = scratch_bytes(context_.arena, plan.workspace_bytes());
  plan.run(handle_.get(), operands, workspace.data());
}

std::unique_ptr<ConvolutionPlan> ConvolutionEngine::choose(const ConvProblem& problem,
                                                           std::span<std::byte* const, 3> operands) {
  require_not_capturing(context_.stream, problem.text());
  const auto planned = plan_.find(problem.text());
  if (planned != plan_.end()) return compile_planned(problem, planned->second);
  // Runs that only measure do not add to the output.
  const bool adds = problem.accumulate == Accumulate::add;
  const Tensor output = adds ? scratch_bytes(context_.arena, bytes_of_dx(problem)) : Tensor();
  const std::array trial{operands[0], operands[1], adds ? output.data() : operands[2]};
  std::unique_ptr<ConvolutionPlan> best = compile_suggested(problem, trial);
  if (best == nullptr) best = measure(problem, trial);
  plan_.emplace(problem.text(), best->choice());
  return best;
}

std::unique_ptr<ConvolutionPlan> ConvolutionEngine::compile_planned(const ConvProblem& problem,
                                                                    const EngineChoice& choice) {
  std::unique_ptr<ConvolutionPlan> plan = ConvolutionGraph(target_, problem).compile(choice);
  require(plan != nullptr, Failure::other,
          "cuDNN cannot compute convolution {} with {} here. The plan comes from another GPU or cuDNN version, and all "
          "ranks use the same engines. Run on nodes of one type.",
          problem.text(), choice.text());
  if (context_.verbosity == Verbosity::verbose) {
    log::info("convolution {}: {}, as planned", problem.text(), choice.text());
  }
  return plan;
}

std::unique_ptr<ConvolutionPlan> ConvolutionEngine::compile_suggested(const ConvProblem& problem,
                                                                      std::span<std::byte* const, 3> operands) {
  const auto suggested = suggested_.find(problem.text());
  if (suggested == suggested_.end()) return nullptr;
  std::unique_ptr<ConvolutionPlan> plan = ConvolutionGraph(target_, problem).compile(suggested->second);
  if (plan == nullptr || plan->workspace_bytes() > room()) return nullptr;
  constexpr float one_run_will_do = 0;
  if (std::isinf(milliseconds(*plan, operands, one_run_will_do))) return nullptr;
  if (context_.verbosity == Verbosity::verbose) {
    log::info("convolution {}: {}, as in an earlier run", problem.text(), plan->choice().text());
  }
  return plan;
}

// A problem always occurs with the same memory in use, so a workspace that fits now fits later.
std::int64_t ConvolutionEngine::room() const {
  if (context_.determinism == Determinism::deterministic) return deterministic_workspace_bytes;
  return std::min(max_workspace_bytes, context_.arena.largest_free_bytes() / workspace_share);
}

std::unique_ptr<ConvolutionPlan> ConvolutionEngine::measure(const ConvProblem& problem,
                                                            std::span<std::byte* const, 3> operands) {
  const ConvolutionGraph graph(target_, problem);
  const std::int64_t max_bytes = room();
  std::unique_ptr<ConvolutionPlan> best;
  float best_ms = std::numeric_limits<float>::infinity();
  int measured = 0;
  std::map<std::int64_t, int> of_engine;
  // Timings differ between runs; the order of cuDNN's candidates does not.
  const int most = context_.determinism == Determinism::deterministic ? 1 : max_measured;
  for (const ConvolutionGraph::Candidate& candidate :
       allowed_candidates(graph, problem.precision, context_.products, context_.determinism)) {
    if (measured == most) break;
    int& of_this = of_engine[candidate.choice.engine];
    if (of_this == max_of_an_engine) continue;
    std::unique_ptr<ConvolutionPlan> plan = graph.compile(candidate);
    if (plan == nullptr || plan->workspace_bytes() > max_bytes) continue;
    const float ms = milliseconds(*plan, operands, best_ms);
    if (std::isfinite(ms)) {
      ++measured;
      ++of_this;
    }
    if (ms >= best_ms) continue;
    best_ms = ms;
    best = std::move(plan);
  }
  require(best != nullptr, Failure::other, "cuDNN has no engine on this GPU for convolution {}.", problem.text());
  if (context_.verbosity == Verbosity::verbose) {
    log::info("convolution {}: {}, {:.1f} TFLOP/s, best of {}", problem.text(), best->choice().text(),
              problem.flops() / static_cast<double>(best_ms) * 1e-9, measured);
  }
  return best;
}

float ConvolutionEngine::milliseconds(const ConvolutionPlan& plan, std::span<std::byte* const, 3> operands,
                                      float to_beat) {
  constexpr float hopeless = 4;  // the first run also loads the kernel
  const Event start = make_timed_event();
  const Event end = make_timed_event();
  float best = std::numeric_limits<float>::infinity();
  const Tensor workspace = scratch_bytes(context_.arena, plan.workspace_bytes());
  for (int run = 0; run <= timed_runs; ++run) {
    check_cuda(cudaEventRecord(start.get(), context_.stream), "record an event");
    const cudnnStatus_t status = plan.try_run(handle_.get(), operands, workspace.data());
    if (status != CUDNN_STATUS_SUCCESS) return rejected(plan, status);
    check_cuda(cudaEventRecord(end.get(), context_.stream), "record an event");
    check_cuda(cudaEventSynchronize(end.get()), "wait for a convolution");
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, start.get(), end.get()), "time a convolution");
    if (run > 0) best = std::min(best, ms);
    if (run > 0 && ms > hopeless * to_beat) break;
  }
  return best;
}

// An engine may accept a problem and still fail to run it. Clears CUDA's last error, which the next check would report.
float ConvolutionEngine::rejected(const ConvolutionPlan& plan, cudnnStatus_t status) const {
  const cudaError_t error = cudaGetLastError();
  if (is_sticky(error)) check_cuda(error, "run a convolution");
  if (context_.verbosity == Verbosity::verbose) {
    log::info("left out {}: {}", plan.choice().text(), cudnnGetErrorString(status));
  }
  return std::numeric_limits<float>::infinity();
}

std::string ConvolutionEngine::export_plan() const {
  std::string text;
  for (const auto& [problem, choice] : plan_) text += problem + " = " + choice.text() + "\n";
  return text;
}

void ConvolutionEngine::import_plan(const std::string& plan) {
  std::map<std::string, EngineChoice> imported;
  std::istringstream lines(plan);
  for (std::string line; std::getline(lines, line);) {
    const std::optional<PlanEntry> entry = read_entry(line);
    require(entry.has_value(), Failure::other,
            "cannot read the convolution engine plan at '{}'. Each line must be 'problem = engine N knobs T:V ...'.",
            line);
    imported[entry->problem] = entry->choice;  // NOLINT(bugprone-unchecked-optional-access): required above
  }
  std::erase_if(chosen_, [&](const auto& entry) {
    const auto planned = imported.find(entry.first.text());
    return planned != imported.end() && planned->second != entry.second->choice();
  });
  imported.merge(plan_);
  plan_ = std::move(imported);
}

// Reproducible bits must not depend on what earlier runs left.
void ConvolutionEngine::suggest_plan(const std::string& plan) {
  if (context_.determinism == Determinism::deterministic) return;
  std::istringstream lines(plan);
  for (std::string line; std::getline(lines, line);) {
    if (std::optional<PlanEntry> entry = read_entry(line)) suggested_[entry->problem] = std::move(entry->choice);
  }
}

}  // namespace lockstep::cuda
