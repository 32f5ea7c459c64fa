// Runs the layers of a graph: forward in order, backward in reverse. A value is freed when its last reader has run, and
// its gradient is the sum over its readers. Backward ends where no earlier parameter learns.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "network/fusion.hpp"
#include "network/graph.hpp"
#include "nn/network.hpp"

namespace lockstep {

class FusedNetwork final : public Network {
 public:
  // Registers the graph's parameters with `context.store`, in the order of forward.
  FusedNetwork(const NetworkGraph& graph, const LayerContext& context);

  Tensor forward(const Tensor& images, Mode mode) override;
  Tensor backward(const Tensor& d_logits, GradientSink& sink) override;
  void draw_dropout(std::uint64_t seed, std::int64_t step, std::int64_t first_sample) override;

 private:
  // Names of a layer's ranges in a profiler.
  struct RangeNames {
    std::string forward;
    std::string backward;
  };

  void require_supported(const Shape& input);
  void find_what_learns(const Tensor& images);
  void free_values_read_last_by(std::size_t layer);
  void complete_parameters(std::size_t layer, GradientSink& sink);
  void add_gradients(const LayerSpec& spec);

  Device& device_;
  const ParameterStore& store_;
  NetworkGraph graph_;
  ValueShape supported_;  // size of the last input
  Tensor dropout_key_;    // Dropout::key of all layers; empty: none drops
  std::vector<LayerSpec> specs_;
  std::vector<std::unique_ptr<Layer>> layers_;  // one for each spec
  std::vector<RangeNames> ranges_;              // by layer
  std::vector<std::size_t> last_reader_;        // layer, by node
  std::vector<std::size_t> first_parameter_;    // index in the store, by layer; at the end the number of all
  // Of the pass that is running. Members, so that later steps request no memory from the system.
  std::vector<NormedMap> values_;  // by node
  std::vector<char> learns_;       // whether a node's value needs a gradient: the layer learns, or one before it
  std::vector<Tensor> gradients_;  // by node
  std::vector<NormedMap> x_;       // of one layer
  std::vector<InputGradient> dx_;  // of one layer
};

}  // namespace lockstep
