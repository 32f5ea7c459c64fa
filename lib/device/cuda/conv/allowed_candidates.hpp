// Which of cuDNN's candidates for a convolution a device may use, and with how much memory.
#pragma once

#include <cstdint>
#include <vector>

#include "device/cuda/conv/cudnn_graph.hpp"
#include "device/cuda/library_context.hpp"

namespace lockstep::cuda {

// In fp32, fast engines for large images need gigabytes, for operands in another layout.
inline constexpr std::int64_t max_workspace_bytes = std::int64_t{8} << 30;
// Of reproducible runs: the engine must not depend on how many ranks share the GPU's memory.
inline constexpr std::int64_t deterministic_workspace_bytes = std::int64_t{1} << 30;

// In the order in which they are tried. `precision`: of the operands.
std::vector<ConvolutionGraph::Candidate> allowed_candidates(const ConvolutionGraph& graph, DType precision,
                                                            Products products, Determinism determinism);

}  // namespace lockstep::cuda
