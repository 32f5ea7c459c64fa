// Size and work of a network, by layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "network/graph.hpp"

namespace lockstep {

// Elements of the node's parameters; running statistics are not parameters.
std::int64_t parameter_count(const NetworkGraph& graph, std::size_t index);

// Multiply-adds of convolutions and matrix products for one sample in forward. Backward has twice as many, without the
// gradient of the images. Blur, norms and pooling count as none.
double multiply_adds(const NetworkGraph& graph, std::size_t index);
double multiply_adds(const NetworkGraph& graph);

// A table with a row for each layer (fusion.hpp): name, operations, output shape, parameters, and millions of
// multiply-adds (MMAC). Throws Error(usage) as fuse().
std::string network_table(const NetworkGraph& graph);

}  // namespace lockstep
