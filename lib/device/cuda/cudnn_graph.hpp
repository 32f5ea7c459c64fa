// cuDNN's graph API, through the backend's C functions: descriptors that destroy themselves, and one convolution as a
// graph of a single operation.
#pragma once

#include <cudnn_graph.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/conv_problem.hpp"
#include "device/cuda/engine_choice.hpp"

namespace lockstep::cuda {

struct DestroyCudnn {
  void operator()(cudnnHandle_t handle) const noexcept { cudnnDestroy(handle); }
};
using CudnnHandle = std::unique_ptr<cudnnContext, DestroyCudnn>;
CudnnHandle make_cudnn_handle(cudaStream_t stream);

// What an engine says of its arithmetic.
struct EngineNotes {
  bool tensor_cores = false;  // on fp32 operands: TF32
  bool narrows_inputs = false;
  bool narrow_sums = false;
  bool nondeterministic = false;
};

class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);

  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                  const void* values);
  Descriptor& set(cudnnBackendAttributeName_t name, std::int64_t value);
  Descriptor& set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values);
  Descriptor& set(cudnnBackendAttributeName_t name, std::span<const Descriptor> values);
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& value);
  // Returns cuDNN's verdict where "not supported" is an answer.
  cudnnStatus_t try_finalize() { return cudnnBackendFinalize(get()); }
  void finalize();

  cudnnBackendDescriptor_t get() const { return descriptor_.get(); }

 private:
  struct Destroy {
    void operator()(void* descriptor) const noexcept { cudnnBackendDestroyDescriptor(descriptor); }
  };
  std::unique_ptr<void, Destroy> descriptor_;
};

// One convolution in one direction, compiled. Operands in the order of ConvProblem.
class ConvolutionPlan {
 public:
  ConvolutionPlan(Descriptor plan, EngineChoice choice);

  const EngineChoice& choice() const { return choice_; }
  std::int64_t workspace_bytes() const { return workspace_bytes_; }
  // Stream-ordered, on the stream of `handle`.
  void run(cudnnHandle_t handle, std::span<std::byte* const, 3> operands, std::byte* workspace) const;

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
