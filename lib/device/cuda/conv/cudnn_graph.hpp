// One convolution as a cuDNN graph of a single operation, and its compiled execution plans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/conv_problem.hpp"
#include "device/cuda/conv/cudnn_descriptor.hpp"
#include "device/cuda/conv/engine_choice.hpp"
#include "device/cuda/conv/plan_target.hpp"

namespace lockstep::cuda {

// Numerical notes of an engine.
struct EngineNotes {
  bool tensor_cores = false;    // for fp32 operands: TF32
  bool narrows_inputs = false;  // rounds inputs to a narrower type
  bool narrow_sums = false;     // accumulates in half precision
  bool nondeterministic = false;
};

// A compiled convolution in one direction. Operands in the order of ConvProblem.
class ConvolutionPlan {
 public:
  ConvolutionPlan(Descriptor plan, EngineChoice choice);

  const EngineChoice& choice() const { return choice_; }
  std::int64_t workspace_bytes() const { return workspace_bytes_; }
  // Stream-ordered, on the stream of `handle`.
  void run(cudnnHandle_t handle, std::span<std::byte* const, 3> operands, std::byte* workspace) const;
  // The same, but returns cuDNN's status, for engines that may fail.
  cudnnStatus_t try_run(cudnnHandle_t handle, std::span<std::byte* const, 3> operands, std::byte* workspace) const;

 private:
  Descriptor plan_;
  EngineChoice choice_;
  std::int64_t workspace_bytes_ = 0;
};

// A convolution as cuDNN sees it: NHWC operands with padded channels, fp32 accumulation.
class ConvolutionGraph {
 public:
  // `target` outlives this.
  ConvolutionGraph(const PlanTarget& target, const ConvProblem& problem);

  // cuDNN's candidates in the order of its heuristics, followed by those of the fallback list.
  struct Candidate {
    Descriptor config;
    EngineChoice choice;
    EngineNotes notes;
  };
  std::vector<Candidate> candidates() const;

  // Null if the engine cannot compute the convolution.
  std::unique_ptr<ConvolutionPlan> compile(const Candidate& candidate) const;
  std::unique_ptr<ConvolutionPlan> compile(const EngineChoice& choice) const;

 private:
  std::unique_ptr<ConvolutionPlan> compile(const Descriptor& config, const EngineChoice& choice) const;
  void add_candidates(cudnnBackendHeurMode_t mode, std::vector<Candidate>& candidates) const;

  const PlanTarget& target_;
  Descriptor graph_;
};

}  // namespace lockstep::cuda
