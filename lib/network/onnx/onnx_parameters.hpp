// The parameters and statistics of a network from an ONNX file: arrays under PyTorch's names, each of one layer.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "network/onnx/onnx_file.hpp"
#include "network/onnx/onnx_network.hpp"
#include "network/onnx/onnx_node.hpp"

namespace lockstep {

class OnnxParameters {
 public:
  // `file` outlives this. `taken`: a name that no layer may have.
  OnnxParameters(const OnnxFile& file, const std::string& taken) : file_(file), layer_names_{taken} {}

  // The name of a new layer, from that of its weight: "layer1.0.conv1" of "layer1.0.conv1.weight", or "layer<index>".
  // Throws as OnnxNode::refuse() if another layer has the name or the weight.
  std::string layer_name(const OnnxNode& node, const onnx::TensorProto& weight, std::size_t index);
  // Takes an array, and returns it. Throws as OnnxNode::refuse() unless it has these dims and is of no other layer, and
  // as OnnxFile::floats().
  NamedArray& keep(const OnnxNode& node, const std::string& name, const onnx::TensorProto& tensor,
                   const Integers& dims);

  std::vector<NamedArray> take() { return std::move(arrays_); }
  const std::string& foreign_name() const { return foreign_name_; }  // as OnnxNetwork::foreign_name

 private:
  void require_unread(const OnnxNode& node, const onnx::TensorProto& tensor) const;

  const OnnxFile& file_;
  std::set<std::string> layer_names_;
  std::set<const onnx::TensorProto*> kept_;
  std::vector<NamedArray> arrays_;
  std::string foreign_name_;
};

}  // namespace lockstep
