// Writes a network as an ONNX graph (https://onnx.ai), operator set 13. ONNX maps are [n, c, h, w].
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nn/graph_writer.hpp"

namespace lockstep {

inline constexpr std::int64_t onnx_operator_set = 13;

class OnnxGraph final : public GraphWriter {
 public:
  // Adds nodes and weights to `graph`. `entries`: the values of all parameters and statistics. Both outlive this.
  OnnxGraph(onnx::GraphProto& graph, std::span<const ParameterStore::Entry> entries);

  GraphValue convolution(const GraphValue& x, const Conv2d& conv, const Parameter& weight,
                         const Parameter* bias) override;
  GraphValue norm(const GraphValue& x, const Parameter& scale, const Parameter& shift, const Statistic& mean,
                  const Statistic& variance) override;
  GraphValue activation(const GraphValue& x, Activation activation) override;
  GraphValue add(const GraphValue& a, const GraphValue& b) override;
  GraphValue max_pool(const GraphValue& x, const Pool2d& pool) override;
  GraphValue blur(const GraphValue& x, std::int64_t stride) override;
  GraphValue mean_pool(const GraphValue& x) override;
  GraphValue subsample(const GraphValue& x, std::int64_t stride, std::int64_t channels) override;
  GraphValue flatten(const GraphValue& x) override;
  GraphValue linear(const GraphValue& x, const Parameter& weight, const Parameter& bias) override;

  // (x - mean) / deviation per channel.
  GraphValue normalize(const GraphValue& x, std::span<const float> mean, std::span<const float> deviation);
  // Makes x a graph output with this name.
  void set_output(const GraphValue& x, const std::string& name);

 private:
  // A new node with these inputs and one output, named after its kind and index.
  onnx::NodeProto& node(const char* kind, std::span<const std::string> inputs);
  GraphValue value_of(const onnx::NodeProto& node, std::int64_t channels) const { return {node.output(0), channels}; }
  // Adds a constant and returns its name.
  std::string weight(const std::string& name);
  std::string constant(const std::string& name, std::span<const std::int64_t> dims, std::span<const float> values);
  std::string numbers(std::span<const std::int64_t> values);

  onnx::GraphProto& graph_;
  std::map<std::string, const ParameterStore::Entry*, std::less<>> entries_;
};

}  // namespace lockstep
