#include "device/cuda/conv/allowed_candidates.hpp"

#include <algorithm>

namespace lockstep::cuda {
namespace {

bool allows(DType precision, Products products, Determinism determinism, const EngineNotes& notes) {
  if (notes.narrow_sums) return false;
  if (determinism == Determinism::deterministic && notes.nondeterministic) return false;
  if (precision != DType::f32 || products == Products::tf32) return true;
  return !notes.tensor_cores && !notes.narrows_inputs;
}

}  // namespace

std::vector<ConvolutionGraph::Candidate> allowed_candidates(const ConvolutionGraph& graph, DType precision,
                                                            Products products, Determinism determinism) {
  std::vector<ConvolutionGraph::Candidate> candidates = graph.candidates();
  std::erase_if(candidates, [&](const ConvolutionGraph::Candidate& one) {
    return !allows(precision, products, determinism, one.notes);
  });
  // For some layers, the first deterministic candidate is one without tensor cores.
  if (determinism == Determinism::deterministic && precision != DType::f32) {
    std::ranges::stable_partition(candidates, [](const auto& one) { return one.notes.tensor_cores; });
  }
  return candidates;
}

}  // namespace lockstep::cuda
