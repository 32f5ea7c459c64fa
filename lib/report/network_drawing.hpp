// Drawings of networks, as SVG: a box for each layer (network/fusion.hpp), from top to bottom, with its output shape.
//
// A row is a layer, and row 0 the input. A value that only the next row reads is an arrow between the boxes. A value
// that is read further down is an arc beside them: it goes down in a lane, and branches off into each reader.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "network/cost.hpp"
#include "network/graph.hpp"

namespace lockstep {

// The rows between which an arc is in its lane.
struct ArcRows {
  std::size_t first;
  std::size_t last;  // greater than `first`
};
// A lane for each arc, from 0, the one next to the boxes. Arcs may share a lane if one ends where, or before, the other
// begins. Shorter arcs are further inside.
std::vector<std::size_t> arc_lanes(std::span<const ArcRows> arcs);

struct DrawnEdge {
  std::size_t from;  // rows; `to` is greater
  std::size_t to;
  std::optional<std::size_t> lane;  // none: from a row to the next one
};

struct NetworkLayout {
  std::vector<LayerSummary> rows;
  std::vector<DrawnEdge> edges;  // each once, in order of `from`; all arcs of a row have the same lane
};
// Throws Error(usage) as fuse().
NetworkLayout layout_of(const NetworkGraph& graph);

// Larger networks are not drawn, so that a page stays below a few MB.
inline constexpr std::size_t most_drawn_nodes = 2000;
inline constexpr std::size_t most_drawn_edges = 5000;

// The network's size and its drawing, which the reader expands if it is long.
std::string network_html(const NetworkGraph& graph);

}  // namespace lockstep
