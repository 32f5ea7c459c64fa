// A fixture for tests that read ONNX files.
#pragma once

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/io/file.hpp"
#include "network/onnx/onnx_network.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep {

// An ONNX file that a test puts together: convolution, norm, ReLU, pooling, linear layer.
class WrittenOnnx : public testing::Test {
 protected:
  using Dims = std::vector<std::int64_t>;
  using Names = std::vector<std::string>;

  WrittenOnnx() {
    model_.set_ir_version(9);
    model_.add_opset_import()->set_version(18);
    graph().set_name("net");
    set_shape(*graph().add_input(), "x", {0, 3, 8, 8});
    graph().add_output()->set_name("y");
    node("Conv", {"x", "conv1.weight"}, "a");
    ints("pads", {1, 1, 1, 1});
    array("conv1.weight", {4, 3, 3, 3});
    node("BatchNormalization", {"a", "bn1.weight", "bn1.bias", "bn1.running_mean", "bn1.running_var"}, "b");
    for (const char* name : {"bn1.weight", "bn1.bias", "bn1.running_mean", "bn1.running_var"}) array(name, {4});
    node("Relu", {"b"}, "c");
    node("GlobalAveragePool", {"c"}, "d");
    node("Flatten", {"d"}, "e");
    node("Gemm", {"e", "fc.weight", "fc.bias"}, "y");
    integer("transB", 1);
    array("fc.weight", {10, 4});
    array("fc.bias", {10});
  }

  onnx::GraphProto& graph() { return *model_.mutable_graph(); }
  onnx::NodeProto& node_at(int index) { return *graph().mutable_node(index); }
  onnx::TensorProto& array_named(const std::string& name) {
    for (onnx::TensorProto& one : *graph().mutable_initializer()) {
      if (one.name() == name) return one;
    }
    throw std::logic_error(name);
  }

  static void set_shape(onnx::ValueInfoProto& value, const std::string& name, const Dims& dims) {
    value.set_name(name);
    onnx::TypeProto::Tensor& tensor = *value.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(onnx::TensorProto::FLOAT);
    tensor.mutable_shape()->Clear();
    for (const std::int64_t dim : dims) {
      if (dim == 0) {
        tensor.mutable_shape()->add_dim()->set_dim_param("open");
      } else {
        tensor.mutable_shape()->add_dim()->set_dim_value(dim);
      }
    }
  }
  void node(const std::string& kind, const Names& inputs, const std::string& output) {
    last_ = graph().add_node();
    last_->set_op_type(kind);
    last_->set_name("/" + kind);
    for (const std::string& input : inputs) last_->add_input(input);
    last_->add_output(output);
  }
  // Attributes of the last node.
  void integer(const char* name, std::int64_t value) {
    onnx::AttributeProto& attribute = *last_->add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(value);
  }
  static void number(onnx::NodeProto& node, const char* name, float value) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(value);
  }
  void scalar(const std::string& name, float value) {
    onnx::TensorProto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.add_float_data(value);
  }
  void ints(const char* name, const Dims& values) { ints(*last_, name, values); }
  static void ints(onnx::NodeProto& node, const char* name, const Dims& values) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INTS);
    for (const std::int64_t value : values) attribute.add_ints(value);
  }
  void array(const std::string& name, const Dims& dims) {
    onnx::TensorProto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    std::int64_t count = 1;
    for (const std::int64_t dim : dims) {
      tensor.add_dims(dim);
      count *= dim;
    }
    for (std::int64_t i = 0; i < count; ++i) tensor.add_float_data(static_cast<float>(i + 1));
  }
  void numbers(const std::string& name, const Dims& values) {
    onnx::TensorProto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::INT64);
    tensor.add_dims(std::ssize(values));
    for (const std::int64_t value : values) tensor.add_int64_data(value);
  }
  // A node in the place of the one at `index`.
  void replace(int index, const std::string& kind, const Names& inputs) {
    onnx::NodeProto& node = node_at(index);
    const std::string output = node.output(0);
    node.Clear();
    node.set_op_type(kind);
    node.set_name("/" + kind);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    last_ = &node;
  }

  // A GELU as PyTorch composes it, in the place of the ReLU: nodes 2 to 6.
  void compose_gelu() {
    replace(2, "Mul", {"product", "half"});
    node("Div", {"b", "root"}, "quotient");
    node("Erf", {"quotient"}, "erf");
    node("Add", {"erf", "one"}, "factor");
    node("Mul", {"b", "factor"}, "product");
    for (const int last : {6, 7, 8, 9}) {
      for (int at = last; at > last - 4; --at) graph().mutable_node()->SwapElements(at, at - 1);
    }
    scalar("root", 1.41421356F);
    scalar("one", 1);
    scalar("half", 0.5F);
  }

  OnnxNetwork read(std::optional<ValueShape> images = {}) {
    const std::filesystem::path path = folder_.path() / "net.onnx";
    const std::string bytes = model_.SerializeAsString();
    write_file_atomically(path, bytes);
    return read_onnx_network(path, images);
  }

  TemporaryFolder folder_;
  onnx::ModelProto model_;
  onnx::NodeProto* last_ = nullptr;
};

inline NamedArray array_in(const OnnxNetwork& network, const std::string& name) {
  const auto found = std::ranges::find(network.arrays, name, &NamedArray::name);
  EXPECT_NE(found, network.arrays.end()) << name;
  return *found;
}

}  // namespace lockstep
