// Writes a network as an ONNX graph (https://onnx.ai), operator set 13. ONNX maps are [n, c, h, w].
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <span>
#include <string>
#include <vector>

#include "network/graph.hpp"
#include "nn/parameter_store.hpp"

namespace lockstep {

inline constexpr std::int64_t onnx_operator_set = 13;

// A value in the ONNX graph, by its name.
using OnnxValue = std::string;

class OnnxGraph {
 public:
  // Adds nodes and weights to `graph`. `entries`: the values of all parameters and statistics. Both outlive this.
  OnnxGraph(onnx::GraphProto& graph, std::span<const ParameterStore::Entry> entries);

  // Adds what the network does with `images` in evaluation, and returns its result.
  OnnxValue add(const NetworkGraph& network, const OnnxValue& images);
  // (x - mean) / deviation per channel.
  OnnxValue normalize(const OnnxValue& x, std::span<const float> mean, std::span<const float> deviation);
  // Makes x a graph output with this name.
  void set_output(const OnnxValue& x, const std::string& name);

 private:
  class AddNode;

  // A new node with these inputs and one output, named after its kind and index.
  onnx::NodeProto& node(const char* kind, std::span<const std::string> inputs);
  // Adds a constant and returns its name.
  std::string weight(const std::string& name);
  std::string constant(const std::string& name, std::span<const std::int64_t> dims, std::span<const float> values);
  std::string numbers(std::span<const std::int64_t> values);

  onnx::GraphProto& graph_;
  std::map<std::string, const ParameterStore::Entry*, std::less<>> entries_;
};

}  // namespace lockstep
