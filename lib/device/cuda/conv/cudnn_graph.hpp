// One convolution as a graph of cuDNN's, of a single operation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/conv_problem.hpp"
#include "device/cuda/conv/cudnn_descriptor.hpp"
#include "device/cuda/conv/engine_choice.hpp"

namespace lockstep::cuda {

// What an engine says of its arithmetic.
struct EngineNotes {
  bool tensor_cores = false;  // on fp32 operands: TF32
  bool narrows_inputs = false;
  bool narrow_sums = false;
  bool nondeterministic = false;
};

// One convolution in one direction, compiled. Operands in the order of ConvProblem.
class ConvolutionPlan {
 public:
  ConvolutionPlan(Descriptor plan, EngineChoice choice);

  const EngineChoice& choice() const { return choice_; }
  std::int64_t workspace_bytes() const { return workspace_bytes_; }
  // Stream-ordered, on the stream of `handle`.
  void run(cudnnHandle_t handle, std::span<std::byte* const, 3> operands, std::byte* workspace) const;
  // The same, but returns cuDNN's verdict where "cannot after all" is an answer.
  cudnnStatus_t try_run(cudnnHandle_t handle, std::span<std::byte* const, 3> operands, std::byte* workspace) const;

 private:
  Descriptor plan_;
  EngineChoice choice_;
  std::int64_t workspace_bytes_ = 0;
};

// A convolution as cuDNN sees it: NHWC operands with padded channels, fp32 sums.
class ConvolutionGraph {
 public:
  ConvolutionGraph(cudnnHandle_t handle, const ConvProblem& problem);

  // cuDNN's proposals, best first as it thinks; those of the fallback list come last.
  struct Candidate {
    Descriptor config;
    EngineChoice choice;
    EngineNotes notes;
  };
  std::vector<Candidate> candidates() const;

  // Empty where this engine cannot compute it after all.
  std::unique_ptr<ConvolutionPlan> compile(const Candidate& candidate) const;
  std::unique_ptr<ConvolutionPlan> compile(const EngineChoice& choice) const;

 private:
  std::unique_ptr<ConvolutionPlan> compile(const Descriptor& config, const EngineChoice& choice) const;
  void add_candidates(cudnnBackendHeurMode_t mode, std::vector<Candidate>& candidates) const;

  cudnnHandle_t handle_;
  Descriptor graph_;
};

}  // namespace lockstep::cuda
