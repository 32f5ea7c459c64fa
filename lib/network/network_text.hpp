// A network as text (JSON), for model files and checkpoints:
//
//   {"input": [32, 32, 3], "nodes": [["Conv", "conv1", [0], [3, 64, 3, 1, 1, 0]], ["Relu", "Relu_2", [1], []], ...]}
//
// A node is its operation, its name, the indices of the nodes that it reads (0: the input), and its numbers in the
// order of op::'s members. A size that differs between rows and columns is a list of both: [1, 7].
#pragma once

#include <string>
#include <string_view>

#include "network/graph.hpp"

namespace lockstep {

std::string network_text(const NetworkGraph& graph);
// The text may come from an untrusted file. Throws Error(bad_data) if it is no network.
NetworkGraph network_from_text(std::string_view text);

}  // namespace lockstep
