#include "device/cpu/convolution_engine.hpp"

#include <omp.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <limits>
#include <sstream>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "device/cpu/cpu_layout.hpp"
#include "device/cpu/flat_loops.hpp"
#include "device/plan_line.hpp"

namespace lockstep::cpu {
namespace {

// oneDNN's plain loops: hundreds of times slower, and so not even tried where anything else exists.
bool is_reference(std::string_view name) { return name.find(" ref") != std::string_view::npos; }

ConvProblem problem_of(Direction direction, const Conv2d& conv, const Tensor& x, const Tensor& y) {
  assert(x.layout() == Layout::features || (x.layout() == Layout::images && x.shape()[3] <= most_image_channels));
  assert(x.shape()[3] == conv.in_channels && y.shape()[3] == conv.out_channels);
  assert(y.shape()[1] == conv.out_size(x.shape()[1]) && y.shape()[2] == conv.out_size(x.shape()[2]));
  return {direction, conv, x.shape()[0], x.shape()[1], x.shape()[2], x.layout(), y.dtype()};
}

}  // namespace

ConvolutionEngine::ConvolutionEngine(const CpuContext& context) : context_(context) {
  omp_set_num_threads(context.threads);  // oneDNN takes its number of threads from OpenMP
}

ConvolutionEngine::~ConvolutionEngine() = default;

void ConvolutionEngine::conv_forward(const Conv2d& conv, const Tensor& x, const Tensor& weight, const Tensor& y) {
  run(problem_of(Direction::forward, conv, x, y), {x.data(), weight.data(), y.data()});
}

void ConvolutionEngine::conv_backward_data(const Conv2d& conv, const Tensor& dy, const Tensor& weight,
                                           const Tensor& dx) {
  run(problem_of(Direction::backward_data, conv, dx, dy), {dy.data(), weight.data(), dx.data()});
}

void ConvolutionEngine::conv_backward_weight(const Conv2d& conv, const Tensor& x, const Tensor& dy,
                                             const Tensor& dweight, Accumulate accumulate) {
  const ConvProblem problem = problem_of(Direction::backward_weight, conv, x, dy);
  if (accumulate == Accumulate::overwrite) {
    run(problem, {x.data(), dy.data(), dweight.data()});
    return;
  }
  const std::array dims{conv.out_channels, conv.in_channels, conv.kernel, conv.kernel};
  const std::int64_t count = storage_count(ParameterKind::conv_weight, dims, context_.lanes);
  const Tensor part = scratch_tensor(context_.arena, count * size_of(DType::f32));
  run(problem, {x.data(), dy.data(), part.data()});
  add_to(reinterpret_cast<const float*>(part.data()), count, dweight.as<float>());
}

void ConvolutionEngine::run(const ConvProblem& problem, const Operands& operands) {
  auto found = chosen_.find(problem);
  if (found == chosen_.end()) found = chosen_.emplace(problem, choose(problem, operands)).first;
  execute(*found->second.kernel, operands);
}

void ConvolutionEngine::execute(OneDnnKernel& kernel, const Operands& operands) {
  const Tensor memory = scratch_tensor(context_.arena, kernel.scratch_bytes());
  kernel.run(operands, memory.data());
}

ConvolutionEngine::Choice ConvolutionEngine::choose(const ConvProblem& problem, const Operands& operands) {
  const auto planned = plan_.find(problem.text());
  if (planned != plan_.end()) return compile_planned(problem, planned->second);
  Choice choice = compile_suggested(problem);
  if (choice.kernel == nullptr) choice = measure(problem, operands);
  plan_.emplace(problem.text(), choice.name);
  return choice;
}

ConvolutionEngine::Choice ConvolutionEngine::measure(const ConvProblem& problem, const Operands& operands) {
  Choice best;
  double seconds = std::numeric_limits<double>::infinity();
  visit_convolutions(problem, context_.lanes, [&](const std::string& name, const CompileKernel& compile) {
    if (is_reference(name) && best.kernel != nullptr) return;
    std::unique_ptr<OneDnnKernel> kernel = compile();
    if (kernel == nullptr) return;
    const double candidate_seconds = best_seconds(*kernel, operands, seconds);
    if (candidate_seconds >= seconds) return;
    seconds = candidate_seconds;
    best = {name, std::move(kernel)};
  });
  require(best.kernel != nullptr, Failure::other, "oneDNN has no kernel on this processor for convolution {}.",
          problem.text());
  if (context_.verbosity == Verbosity::verbose) {
    log::info("convolution {}: {}, {:.0f} GFLOP/s", problem.text(), best.name, problem.flops() / seconds * 1e-9);
  }
  return best;
}

ConvolutionEngine::Choice ConvolutionEngine::compile(const ConvProblem& problem, const std::string& name) {
  Choice choice{name, nullptr};
  visit_convolutions(problem, context_.lanes, [&](const std::string& candidate, const CompileKernel& compile) {
    if (candidate == name && choice.kernel == nullptr) choice.kernel = compile();
  });
  return choice;
}

ConvolutionEngine::Choice ConvolutionEngine::compile_suggested(const ConvProblem& problem) {
  const auto suggested = suggested_.find(problem.text());
  if (suggested == suggested_.end()) return {};
  Choice choice = compile(problem, suggested->second);
  if (choice.kernel != nullptr && context_.verbosity == Verbosity::verbose) {
    log::info("convolution {}: {}, as in an earlier run", problem.text(), choice.name);
  }
  return choice;
}

ConvolutionEngine::Choice ConvolutionEngine::compile_planned(const ConvProblem& problem, const std::string& name) {
  Choice choice = compile(problem, name);
  require(choice.kernel != nullptr, Failure::other,
          "no kernel '{}' on this node for convolution {}: the plan comes from a rank on another processor or with "
          "another oneDNN (all ranks compute with the same kernels). Run on nodes of one kind.",
          name, problem.text());
  if (context_.verbosity == Verbosity::verbose) log::info("convolution {}: {}, as planned", problem.text(), name);
  return choice;
}

double ConvolutionEngine::best_seconds(OneDnnKernel& kernel, const Operands& operands, double seconds_to_beat) {
  constexpr int rounds = 3;
  constexpr double hopeless = 2;           // the first run also fetches code and pages; beyond this it is not only that
  constexpr double enough_seconds = 0.03;  // what disturbs a run is short against this
  double best = std::numeric_limits<double>::infinity();
  double spent = 0;
  for (int round = 0; round <= rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    execute(kernel, operands);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (seconds > hopeless * seconds_to_beat) break;
    if (round > 0) best = std::min(best, seconds);
    spent += seconds;
    if (round > 0 && spent > enough_seconds) break;
  }
  return best;
}

std::string ConvolutionEngine::export_plan() const {
  std::string text;
  for (const auto& [problem, name] : plan_) text.append(problem).append(" = ").append(name).append("\n");
  return text;
}

void ConvolutionEngine::import_plan(const std::string& plan) {
  std::map<std::string, std::string> imported;
  std::istringstream lines(plan);
  for (std::string line; std::getline(lines, line);) {
    const std::optional<PlanLine> entry = split_plan_line(line);
    require(entry.has_value(), Failure::other,
            "cannot read the plan of convolution kernels at '{}' (a line is 'problem = kernel').", line);
    imported.insert_or_assign(std::string(entry->problem), std::string(entry->kernel));
  }
  std::erase_if(chosen_, [&](const auto& entry) {
    const auto planned = imported.find(entry.first.text());
    return planned != imported.end() && planned->second != entry.second.name;
  });
  imported.merge(plan_);
  plan_ = std::move(imported);
}

void ConvolutionEngine::suggest_plan(const std::string& plan) {
  std::istringstream lines(plan);
  for (std::string line; std::getline(lines, line);) {
    const std::optional<PlanLine> entry = split_plan_line(line);
    if (entry) suggested_.insert_or_assign(std::string(entry->problem), std::string(entry->kernel));
  }
}

}  // namespace lockstep::cpu
