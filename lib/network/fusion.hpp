// Groups the nodes of a graph into layers, each of which runs several nodes at once:
//
//   convolution (+ bias (+ ReLU))
//   (convolution (+ bias) +) batch norm (+ addition) (+ ReLU)
//   (convolution (+ bias) +) batch norm + GELU, if norms apply it
//   linear + bias (+ ReLU)
//   any other node alone
//
// A node joins the layer before it only if nothing else reads the value between them. Layers run in the order of their
// last nodes, and backward in reverse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "network/graph.hpp"

namespace lockstep {

// What the readers of a layer's value do with the batch norm in that layer; each includes the one before.
// - nothing: they read the normalized map.
// - gradient: the first reader is a convolution. It is the last one in backward, so it may also compute the norm's
//   gradient.
// - deferred: it is the only reader, so it may apply the norm while it reads. The normalized map is never stored.
enum class NormReader : std::uint8_t { nothing, gradient, deferred };

struct LayerSpec {
  std::size_t main;                 // its first node
  std::optional<std::size_t> norm;  // node of the batch norm, which may be the first one
  bool adds = false;                // the second input, after the norm
  Activation activation = Activation::none;
  std::vector<std::size_t> inputs;  // nodes whose values it reads
  std::size_t output;               // node whose value it computes
  NormReader norm_reader = NormReader::nothing;
  // The layer, by its index, whose norm's gradient this one may compute.
  std::optional<std::size_t> previous_norm;
};

// Throws Error(usage) if something else than a Conv reads the input. Devices lay out images in a way of their own,
// which only convolutions read.
void require_images_for_convolutions(const NetworkGraph& graph);

// In order of execution. `norms_apply_gelu`: as Ops of this name; CPUs do.
std::vector<LayerSpec> fuse(const NetworkGraph& graph, bool norms_apply_gelu = true);

}  // namespace lockstep
