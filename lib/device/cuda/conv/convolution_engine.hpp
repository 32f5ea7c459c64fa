// Convolutions by cuDNN's backend API. Each ConvProblem gets one engine: the one in an imported plan, a suggested one
// that still works, or the fastest of the first candidates, timed when the problem first occurs.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "device/cuda/conv/cudnn_graph.hpp"
#include "device/cuda/library_context.hpp"

namespace lockstep::cuda {

class ConvolutionEngine {
 public:
  // `context` outlives this.
  explicit ConvolutionEngine(const LibraryContext& context);

  // Operands in the order of ConvProblem, in the device's precision, with padded channels. Stream-ordered. The first
  // call for a problem waits for the device and must not be captured in a graph.
  void run(const ConvProblem& problem, std::span<std::byte* const, 3> operands);

  // One line per problem: "forward 64->64 ... = engine 31 knobs 2:1".
  std::string export_plan() const;
  // Throws Error(other) that names the unreadable line.
  void import_plan(const std::string& plan);
  // As Ops.
  void suggest_plan(const std::string& plan);

 private:
  std::unique_ptr<ConvolutionPlan> choose(const ConvProblem& problem, std::span<std::byte* const, 3> operands);
  std::unique_ptr<ConvolutionPlan> compile_planned(const ConvProblem& problem, const EngineChoice& choice);
  std::unique_ptr<ConvolutionPlan> compile_suggested(const ConvProblem& problem,
                                                     std::span<std::byte* const, 3> operands);
  std::unique_ptr<ConvolutionPlan> measure(const ConvProblem& problem, std::span<std::byte* const, 3> operands);
  std::int64_t room() const;  // bytes available for a workspace
  // Infinity if the engine cannot run the problem.
  float milliseconds(const ConvolutionPlan& plan, std::span<std::byte* const, 3> operands, float to_beat);
  float rejected(const ConvolutionPlan& plan, cudnnStatus_t status) const;
  void execute(const ConvolutionPlan& plan, std::span<std::byte* const, 3> operands);

  const LibraryContext& context_;
  CudnnHandle handle_;
  PlanTarget target_;
  std::map<ConvProblem, std::unique_ptr<ConvolutionPlan>> chosen_;  // compiled plans in use
  std::map<std::string, EngineChoice> plan_;       // choices in use or imported, by ConvProblem::text()
  std::map<std::string, EngineChoice> suggested_;  // choices of an earlier run, likewise
};

}  // namespace lockstep::cuda
