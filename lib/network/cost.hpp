// Size and work of a network, by layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "network/fusion.hpp"
#include "network/graph.hpp"

namespace lockstep {

// Elements of the node's parameters; running statistics are not parameters.
std::int64_t parameter_count(const NetworkGraph& graph, std::size_t index);

// Multiply-adds of convolutions and matrix products for one sample in forward. Backward has twice as many, without the
// gradient of the images. Blur, norms and pooling count as none.
double multiply_adds(const NetworkGraph& graph, std::size_t index);
double multiply_adds(const NetworkGraph& graph);

struct LayerSummary {
  std::string name;                     // of its first node
  std::vector<std::string> operations;  // "conv 3x3/2", "norm"; none for the input
  ValueShape output;
  std::int64_t parameters = 0;
  double multiply_adds = 0;
};
// Of the input, then of each layer. `layers` are those of fuse().
std::vector<LayerSummary> layer_summaries(const NetworkGraph& graph, std::span<const LayerSpec> layers);

// A table with a row for each layer (fusion.hpp): name, operations, output shape, parameters, and millions of
// multiply-adds (MMAC). Throws Error(usage) as fuse().
std::string network_table(const NetworkGraph& graph);

}  // namespace lockstep
