#include "network/onnx/onnx_network.hpp"

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "network/onnx/onnx_file.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::onnx_network_test {

using Dims = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

// An ONNX file that a test puts together: convolution, norm, ReLU, pooling, linear layer.
class OnnxNetworkTest : public testing::Test {
 protected:
  OnnxNetworkTest() {
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

NamedArray array_in(const OnnxNetwork& network, const std::string& name) {
  const auto found = std::ranges::find(network.arrays, name, &NamedArray::name);
  EXPECT_NE(found, network.arrays.end()) << name;
  return *found;
}

TEST_F(OnnxNetworkTest, reads_operations_shapes_and_weights) {
  const OnnxNetwork network = read();
  std::string kinds;
  for (const GraphNode& node : network.graph.nodes()) kinds += operation_name(node.operation) + " ";
  EXPECT_EQ(kinds, "Input Conv BatchNormalization Relu GlobalAveragePool Gemm ");
  EXPECT_EQ(network.graph.node(0).shape, (ValueShape{8, 8, 3}));
  EXPECT_EQ(network.graph.node(1).name, "conv1");
  EXPECT_EQ(network.graph.nodes().back().shape, (ValueShape{0, 0, 10}));
  EXPECT_EQ(network.arrays.size(), 7U);
  EXPECT_EQ(array_in(network, "conv1.weight").dims, (Dims{4, 3, 3, 3}));
  EXPECT_EQ(array_in(network, "bn1.running_var").values, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_TRUE(network.mean.empty());
  EXPECT_EQ(read(ValueShape{20, 30, 0}).graph.node(1).shape, (ValueShape{20, 30, 4}));
}

TEST_F(OnnxNetworkTest, rows_and_columns_of_a_convolution_may_differ) {
  const auto give_window = [&](const Dims& kernel) {
    node_at(0).clear_attribute();
    ints(node_at(0), "kernel_shape", kernel);
    ints(node_at(0), "strides", {2, 1});
    ints(node_at(0), "pads", {0, 3, 0, 3});
  };
  give_window({1, 9});
  array_named("conv1.weight").set_dims(2, 1);
  array_named("conv1.weight").set_dims(3, 9);
  const OnnxNetwork network = read();
  EXPECT_EQ(network.graph.node(1).as<op::Convolution>()->conv, (Conv2d{3, 4, {1, 9}, {2, 1}, {0, 3}}));
  EXPECT_EQ(network.graph.node(1).shape, (ValueShape{4, 6, 4}));
  EXPECT_EQ(array_in(network, "conv1.weight").dims, (Dims{4, 3, 1, 9}));
  give_window({9, 1});
  expect_error(Failure::bad_data, {"/Conv", "kernel_shape"}, [&] { read(); });
}

TEST_F(OnnxNetworkTest, a_weight_of_in_by_out_is_turned) {
  replace(5, "Gemm", {"e", "fc.weight", "fc.bias"});
  onnx::TensorProto& weight = array_named("fc.weight");
  weight.set_dims(0, 4);
  weight.set_dims(1, 10);
  const NamedArray read_weight = array_in(read(), "fc.weight");
  EXPECT_EQ(read_weight.dims, (Dims{10, 4}));
  EXPECT_EQ(read_weight.values[0], 1);
  EXPECT_EQ(read_weight.values[1], 11);  // row 1, column 0 of the file
  EXPECT_EQ(read_weight.values[4], 2);
}

TEST_F(OnnxNetworkTest, the_mean_over_space_has_several_forms) {
  const auto expect_pool = [&] {
    const OnnxNetwork network = read();
    EXPECT_NE(network.graph.node(4).as<op::GlobalMeanPool>(), nullptr);
    EXPECT_EQ(network.graph.nodes().size(), 6U);
  };
  replace(3, "ReduceMean", {"c", "axes"});
  numbers("axes", {2, 3});
  expect_pool();
  replace(4, "Reshape", {"d", "shape"});
  numbers("shape", {0, -1});
  expect_pool();
  replace(3, "ReduceMean", {"c"});
  ints("axes", {-1, -2});
  integer("keepdims", 0);
  replace(4, "Identity", {"d"});
  expect_pool();
  replace(3, "AveragePool", {"c"});
  ints("kernel_shape", {8, 8});
  replace(4, "Flatten", {"d"});
  expect_pool();
}

// It was refused, and so was DenseNet on 32 x 32 pixels, whose last pooling has 2 x 2.
TEST_F(OnnxNetworkTest, a_mean_over_the_map_that_is_not_flattened_is_a_map_of_one_pixel) {
  replace(1, "AveragePool", {"a"});
  ints("kernel_shape", {8, 8});
  replace(2, "Add", {"b", "b"});
  const OnnxNetwork network = read();
  std::string kinds;
  for (const GraphNode& node : network.graph.nodes()) kinds += operation_name(node.operation) + " ";
  EXPECT_EQ(kinds, "Input Conv AveragePool Add GlobalAveragePool Gemm ");
  EXPECT_EQ(network.graph.node(2).as<op::AveragePool>()->pool.kernel, 8);
  EXPECT_EQ(network.graph.node(3).shape, (ValueShape{1, 1, 4}));
  replace(1, "GlobalAveragePool", {"a"});
  for (const ValueShape& images : {ValueShape{8, 9, 0}, ValueShape{16, 16, 0}}) {
    expect_error(Failure::usage, {"/Add", std::to_string(images.width), "flattened"}, [&] { read(images); });
  }
}

TEST_F(OnnxNetworkTest, operators_may_follow_each_other_in_any_order) {
  replace(1, "Sigmoid", {"a"});
  replace(2, "Add", {"b", "a"});
  const OnnxNetwork network = read();
  EXPECT_NE(network.graph.node(2).as<op::Sigmoid>(), nullptr);
  EXPECT_EQ(network.graph.node(3).inputs, (std::vector<std::size_t>{2, 1}));
}

TEST_F(OnnxNetworkTest, reads_the_numbers_of_activations_norms_and_pooling) {
  number(node_at(1), "epsilon", 0.001F);
  replace(2, "LeakyRelu", {"b"});
  EXPECT_EQ(read().graph.node(3).as<op::LeakyRelu>()->slope, 0.01F);
  number(node_at(2), "alpha", 0.2F);
  const OnnxNetwork leaky = read();
  EXPECT_EQ(leaky.graph.node(2).as<op::BatchNorm>()->epsilon, 0.001F);
  EXPECT_EQ(leaky.graph.node(3).as<op::LeakyRelu>()->slope, 0.2F);

  replace(2, "Clip", {"b", "", "high"});
  scalar("high", 6);
  const op::Clip clip = *read().graph.node(3).as<op::Clip>();
  EXPECT_EQ(clip.low, -op::Clip::largest_bound);
  EXPECT_EQ(clip.high, 6);

  replace(2, "AveragePool", {"b"});
  ints("kernel_shape", {3, 3});
  ints("strides", {2, 2});
  integer("ceil_mode", 1);
  const OnnxNetwork pooled = read();
  const op::AveragePool pool = *pooled.graph.node(3).as<op::AveragePool>();
  EXPECT_TRUE(pool.pool.ceil);
  EXPECT_FALSE(pool.counts_padding);
  EXPECT_EQ(pooled.graph.node(3).shape, (ValueShape{4, 4, 4}));

  replace(2, "Concat", {"b", "a"});
  integer("axis", 1);
  array_named("fc.weight").set_dims(0, 5);  // 40 elements
  array_named("fc.weight").set_dims(1, 8);
  array_named("fc.bias").set_dims(0, 5);
  array_named("fc.bias").mutable_float_data()->Truncate(5);
  const OnnxNetwork joined = read();
  EXPECT_NE(joined.graph.node(3).as<op::Concat>(), nullptr);
  EXPECT_EQ(joined.graph.node(3).shape.channels, 8);
}

TEST_F(OnnxNetworkTest, constants_multiply_and_add) {
  const auto factors = [&] { return read().graph.node(3).as<op::Scale>()->factors; };
  const auto terms = [&] { return read().graph.node(3).as<op::Shift>()->terms; };
  using Floats = std::vector<float>;
  array("by_channel", {1, 4, 1, 1});
  scalar("two", 2);
  replace(2, "Mul", {"by_channel", "b"});
  EXPECT_EQ(factors(), (Floats{1, 2, 3, 4}));
  expect_message(read().warnings.at(0), {"net.onnx", "by_channel", "not trained"});
  replace(2, "Mul", {"b", "two"});
  EXPECT_EQ(factors(), Floats{2});
  replace(2, "Div", {"b", "by_channel"});
  EXPECT_EQ(factors(), (Floats{1, 0.5F, 1.0F / 3, 0.25F}));
  replace(2, "Add", {"b", "by_channel"});
  EXPECT_EQ(terms(), (Floats{1, 2, 3, 4}));
  replace(2, "Sub", {"b", "two"});
  EXPECT_EQ(terms(), Floats{-2});
  replace(2, "Sub", {"two", "b"});  // 2 + -1 * b
  EXPECT_EQ(factors(), Floats{-1});
  EXPECT_EQ(read().graph.node(4).as<op::Shift>()->terms, Floats{2});
  array_named("two").set_float_data(0, 0);
  replace(2, "Div", {"b", "two"});
  expect_error(Failure::usage, {"/Div", "divides by 0"}, [&] { read(); });
  replace(2, "Div", {"two", "b"});
  expect_error(Failure::usage, {"/Div", "constants"}, [&] { read(); });
  array_named("two").set_float_data(0, std::nanf(""));
  replace(2, "Mul", {"b", "two"});
  expect_error(Failure::usage, {"'two'", "finite"}, [&] { read(); });
  replace(2, "Mul", {"b", "a"});
  expect_error(Failure::usage, {"/Mul", "constants"}, [&] { read(); });
  array("by_column", {8});
  replace(2, "Mul", {"b", "by_column"});
  expect_error(Failure::usage, {"/Mul", "by_column", "[8]"}, [&] { read(); });
}

TEST_F(OnnxNetworkTest, reads_gelu_as_an_operator_and_as_pytorch_composes_it) {
  const onnx::ModelProto whole = model_;
  const auto expect_gelu = [&] {
    const OnnxNetwork network = read();
    std::string kinds;
    for (const GraphNode& node : network.graph.nodes()) kinds += operation_name(node.operation) + " ";
    EXPECT_EQ(kinds, "Input Conv BatchNormalization Gelu GlobalAveragePool Gemm ");
    EXPECT_EQ(network.graph.node(3).inputs, std::vector<std::size_t>{2});
    EXPECT_TRUE(network.warnings.empty());
  };
  replace(2, "Gelu", {"b"});
  expect_gelu();
  model_ = whole;
  compose_gelu();
  expect_gelu();
  for (const int sum_or_product : {4, 5, 6}) {
    node_at(sum_or_product).mutable_input()->SwapElements(0, 1);
    expect_gelu();
  }
  model_ = whole;
  scalar("root", 1.41421356F);
  replace(2, "Div", {"b", "root"});
  EXPECT_EQ(read().graph.node(3).as<op::Scale>()->factors, std::vector<float>{1 / 1.41421356F});
}

TEST_F(OnnxNetworkTest, parts_of_a_gelu_and_approximations_are_refused) {
  const onnx::ModelProto whole = model_;
  replace(2, "Gelu", {"b"});
  onnx::AttributeProto& approximate = *last_->add_attribute();
  approximate.set_name("approximate");
  approximate.set_type(onnx::AttributeProto::STRING);
  approximate.set_s("none");
  EXPECT_NO_THROW(read());
  approximate.set_s("tanh");
  expect_error(Failure::usage, {"/Gelu", "approximat"}, [&] { read(); });
  model_ = whole;
  replace(2, "Erf", {"b"});
  expect_error(Failure::usage, {"/Erf", "GELU"}, [&] { read(); });
  model_ = whole;
  compose_gelu();
  node_at(5).set_input(0, "a");  // another factor than x
  expect_error(Failure::usage, {"/Mul", "constants"}, [&] { read(); });
  node_at(5).set_input(0, "b");
  array_named("half").set_float_data(0, 0.25F);
  expect_error(Failure::usage, {"/Mul", "part of a GELU"}, [&] { read(); });
  array_named("half").set_float_data(0, 0.5F);
  node_at(7).set_input(0, "factor");
  expect_error(Failure::usage, {"/GlobalAveragePool", "part of a GELU"}, [&] { read(); });
}

TEST_F(OnnxNetworkTest, reads_dropout_and_norms_of_rows) {
  replace(4, "Dropout", {"f", "ratio"});
  node("Flatten", {"d"}, "f");
  for (int at = graph().node_size() - 1; at > 4; --at) graph().mutable_node()->SwapElements(at, at - 1);
  scalar("ratio", 0.25F);
  EXPECT_EQ(read().graph.node(5).as<op::Dropout>()->ratio, 0.25F);
  node_at(5).mutable_input()->RemoveLast();
  EXPECT_EQ(read().graph.node(5).as<op::Dropout>()->ratio, 0.5F);
  replace(5, "Dropout", {"f", "ratio"});
  array_named("ratio").set_float_data(0, 0);
  EXPECT_NE(read().graph.node(5).as<op::Linear>(), nullptr);
  array_named("ratio").set_float_data(0, 1);
  expect_error(Failure::usage, {"/Dropout", "ratio"}, [&] { read(); });

  replace(5, "BatchNormalization", {"f", "bn2.weight", "bn2.bias", "bn2.running_mean", "bn2.running_var"});
  for (const char* name : {"bn2.weight", "bn2.bias", "bn2.running_mean", "bn2.running_var"}) array(name, {4});
  const OnnxNetwork network = read();
  EXPECT_NE(network.graph.node(5).as<op::Unflatten>(), nullptr);
  EXPECT_EQ(network.graph.node(6).name, "bn2");
  EXPECT_EQ(network.graph.node(7).shape, (ValueShape{0, 0, 4}));
  EXPECT_EQ(array_in(network, "bn2.bias").dims, Dims{4});
}

TEST_F(OnnxNetworkTest, an_average_takes_the_zeros_of_a_pad_into_account) {
  replace(1, "Pad", {"a", "pads"});
  numbers("pads", {0, 0, 1, 1, 0, 0, 1, 1});
  replace(2, "AveragePool", {"b"});
  ints("kernel_shape", {3, 3});
  const OnnxNetwork network = read();
  const op::AveragePool pool = *network.graph.node(2).as<op::AveragePool>();
  EXPECT_EQ(pool.pool.padding, 1);
  EXPECT_TRUE(pool.counts_padding);
  EXPECT_EQ(network.graph.node(2).shape, network.graph.node(1).shape);
  ints("pads", {1, 1, 1, 1});
  expect_error(Failure::usage, {"/AveragePool", "padded"}, [&] { read(); });
  replace(2, "Relu", {"b"});
  expect_error(Failure::usage, {"/Relu", "AveragePool"}, [&] { read(); });
  // The last of these windows would begin in the zeros behind the map, where PyTorch's own padding has none.
  replace(2, "AveragePool", {"b"});
  ints("kernel_shape", {3, 3});
  ints("strides", {9, 9});
  integer("ceil_mode", 1);
  expect_error(Failure::usage, {"/AveragePool", "windows"}, [&] { read(); });
  node_at(1).add_input("");
  node_at(1).add_input("pads");
  expect_error(Failure::usage, {"/Pad", "axes"}, [&] { read(); });
}

TEST_F(OnnxNetworkTest, bounds_may_be_cast_from_whole_numbers) {
  replace(2, "Clip", {"b", "low", "high"});
  numbers("zero", {0});
  numbers("six", {6});
  node("CastLike", {"zero", "b"}, "low");
  node("Cast", {"six"}, "high");
  integer("to", onnx::TensorProto::FLOAT);
  for (int i = 0; i < 2; ++i) {
    for (int at = graph().node_size() - 1; at > 0; --at) graph().mutable_node()->SwapElements(at, at - 1);
  }
  const OnnxNetwork network = read();
  EXPECT_EQ(network.graph.node(3).as<op::Clip>()->low, 0);
  EXPECT_EQ(network.graph.node(3).as<op::Clip>()->high, 6);
}

TEST_F(OnnxNetworkTest, a_linear_layer_may_have_no_bias) {
  node_at(5).mutable_input()->RemoveLast();
  const OnnxNetwork gemm = read();
  EXPECT_FALSE(gemm.graph.nodes().back().as<op::Linear>()->has_bias);
  EXPECT_EQ(gemm.arrays.size(), 6U);
  const std::vector<float> weight = array_in(gemm, "fc.weight").values;

  replace(5, "MatMul", {"e", "turned"});
  node("Transpose", {"fc.weight"}, "turned");
  ints("perm", {1, 0});
  for (int i = graph().node_size() - 1; i > 0; --i) graph().mutable_node()->SwapElements(i, i - 1);
  const OnnxNetwork product = read();
  EXPECT_FALSE(product.graph.nodes().back().as<op::Linear>()->has_bias);
  EXPECT_EQ(array_in(product, "fc.weight").dims, (Dims{10, 4}));
  EXPECT_EQ(array_in(product, "fc.weight").values, weight);
}

TEST_F(OnnxNetworkTest, names_that_are_not_pytorchs_are_told) {
  EXPECT_EQ(read().warnings, Names());
  node_at(0).set_input(1, "onnx::Conv_146");
  array_named("conv1.weight").set_name("onnx::Conv_146");
  const OnnxNetwork network = read();
  EXPECT_EQ(network.graph.node(1).name, "layer1");
  expect_message(network.warnings.at(0), {"net.onnx", "onnx::Conv_146", "optimize=False"});
  graph().set_doc_string("rule_name: FuseBatchNormIntoConv");
  expect_message(read().warnings.at(0), {"net.onnx", "merged", "optimize=False"});
  number(node_at(1), "momentum", 0.99F);
  expect_message(read().warnings.at(1), {"net.onnx", "'bn1'", "0.01", "--norm-momentum"});
}

TEST_F(OnnxNetworkTest, a_normalization_at_the_input_is_told_apart) {
  replace(0, "Conv", {"n", "conv1.weight"});
  ints("pads", {1, 1, 1, 1});
  node("Sub", {"x", "mean"}, "m");
  node("Div", {"m", "deviation"}, "n");
  array("mean", {1, 3, 1, 1});
  array("deviation", {3, 1, 1});
  onnx::GraphProto sorted = graph();
  sorted.clear_node();
  for (const char* kind :
       {"Sub", "Div", "Conv", "BatchNormalization", "Relu", "GlobalAveragePool", "Flatten", "Gemm"}) {
    for (const onnx::NodeProto& one : graph().node()) {
      if (one.op_type() == kind) *sorted.add_node() = one;
    }
  }
  graph() = sorted;
  const OnnxNetwork network = read();
  EXPECT_EQ(network.mean, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(network.deviation, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(network.graph.nodes().size(), 6U);
}

TEST_F(OnnxNetworkTest, arrays_computed_from_others_are_known) {
  numbers("one", {1});
  node("Shape", {"conv1.weight"}, "channels");
  integer("end", 1);
  node("Expand", {"channels", "one"}, "bias_shape");
  node("Constant", {}, "zero");
  onnx::AttributeProto& value = *last_->add_attribute();
  value.set_name("value_float");
  value.set_f(0);
  node("CastLike", {"zero", "x"}, "zero_float");
  node("Expand", {"zero_float", "bias_shape"}, "bias");
  onnx::GraphProto sorted = graph();
  sorted.clear_node();
  for (int i = 6; i < graph().node_size(); ++i) *sorted.add_node() = graph().node(i);
  for (int i = 0; i < 6; ++i) *sorted.add_node() = graph().node(i);
  sorted.mutable_node(5)->add_input("bias");  // of the convolution
  graph() = sorted;
  const OnnxNetwork network = read();
  EXPECT_FALSE(network.graph.node(1).as<op::Convolution>()->has_bias);
  EXPECT_EQ(network.arrays.size(), 7U);
  graph().mutable_node(2)->mutable_attribute(0)->set_f(2);
  EXPECT_EQ(array_in(read(), "conv1.bias").values, (std::vector<float>{2, 2, 2, 2}));
}

TEST_F(OnnxNetworkTest, computed_arrays_cannot_fill_the_memory) {
  onnx::GraphProto rest = graph();
  graph().clear_node();
  numbers("size", {1 << 20});
  numbers("one", {1});
  for (int i = 0; i < 6; ++i) node("Expand", {"one", "size"}, "big" + std::to_string(i));
  for (const onnx::NodeProto& one : rest.node()) *graph().add_node() = one;
  EXPECT_NO_THROW(read());  // nothing reads them
  replace(8, "Add", {"b", "big5"});
  expect_error(Failure::usage, {"/Expand", "too large"}, [&] { read(); });
}

// As x.view(x.size(0), -1) in PyTorch's older exporter.
TEST_F(OnnxNetworkTest, the_batch_may_be_taken_from_a_shape) {
  graph().mutable_node()->RemoveLast();  // Gemm
  graph().mutable_node()->RemoveLast();  // Flatten
  numbers("first", {0});
  array_named("first").clear_dims();
  numbers("rest", {-1});
  node("Shape", {"d"}, "shape");
  node("Gather", {"shape", "first"}, "batch");
  node("Unsqueeze", {"batch", "axes"}, "batches");
  numbers("axes", {0});
  node("Concat", {"batches", "rest"}, "two");
  integer("axis", 0);
  node("Reshape", {"d", "two"}, "e");
  node("Gemm", {"e", "fc.weight", "fc.bias"}, "y");
  integer("transB", 1);
  EXPECT_EQ(read().graph.nodes().back().shape, (ValueShape{0, 0, 10}));
  array_named("first").set_int64_data(0, 4);
  expect_error(Failure::usage, {"/Gather", "list"}, [&] { read(); });
}

TEST_F(OnnxNetworkTest, impossible_shapes_are_refused) {
  replace(4, "Reshape", {"d", "shape"});
  numbers("shape", {0, -1});
  EXPECT_NO_THROW(read());
  for (const Dims& dims : {Dims{-1, -1}, Dims{0, 0}, Dims{-2, 4}, Dims{-1, 1 << 20, 1, 1}, Dims{4, -1, -1, 1}}) {
    onnx::TensorProto& shape = array_named("shape");
    shape.set_dims(0, std::ssize(dims));
    shape.clear_int64_data();
    for (const std::int64_t dim : dims) shape.add_int64_data(dim);
    expect_error(Failure::usage, {"/Reshape", "shape"}, [&] { read(); });
  }
}

// What computes an array is named only if no node that reads it has a better reason to be refused.
TEST_F(OnnxNetworkTest, an_unknown_operator_is_named_before_its_arrays) {
  const auto sorted = [&](const char* kind) {
    replace(2, kind, {"b", "two"});
    node("Unsqueeze", {"bn1.bias", "axes"}, "one");
    node("Mul", {"one", "one"}, "two");
    for (int node = 0; node < 2; ++node) {
      for (int at = graph().node_size() - 1; at > 0; --at) graph().mutable_node()->SwapElements(at, at - 1);
    }
  };
  numbers("axes", {1});
  const onnx::ModelProto whole = model_;
  sorted("PRelu");
  expect_error(Failure::usage, {"/PRelu", "no such operator"}, [&] { read(); });
  model_ = whole;
  sorted("Add");
  expect_error(Failure::usage, {"/Mul", "shapes"}, [&] { read(); });
  model_ = whole;
  replace(1, "BatchNormalization", {"a", "ones", "bn1.bias", "bn1.running_mean", "bn1.running_var"});
  node("Constant", {}, "ones");
  onnx::AttributeProto& ones = *last_->add_attribute();
  ones.set_name("value_floats");
  ones.set_type(onnx::AttributeProto::FLOATS);
  for (int i = 0; i < 4; ++i) ones.add_floats(1);
  for (int at = graph().node_size() - 1; at > 0; --at) graph().mutable_node()->SwapElements(at, at - 1);
  expect_error(Failure::usage, {"/BatchNormalization", "affine=True"}, [&] { read(); });
}

TEST_F(OnnxNetworkTest, a_long_name_is_another_one_and_is_cut_in_messages) {
  const std::string name(70'000, 'b');
  array_named("conv1.weight").set_name(name + ".weight");
  node_at(0).set_input(1, name + ".weight");
  const OnnxNetwork network = read();
  EXPECT_EQ(network.graph.node(1).name, "layer1");
  EXPECT_LT(network.warnings.at(0).size(), 600U);
  EXPECT_EQ(short_text(Dims(1000, 7)), "[7, 7, 7, 7, 7, 7, 7, 7, ...]");
}

TEST_F(OnnxNetworkTest, arrays_may_lie_in_a_file_beside_it) {
  const std::vector<float> values = {9, 1, 2, 3, 4};
  write_file_atomically(folder_.path() / "net.onnx.data", std::as_bytes(std::span(values)));
  onnx::TensorProto& tensor = array_named("bn1.bias");
  tensor.clear_float_data();
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  const auto entry = [&](const char* key, const std::string& value) {
    onnx::StringStringEntryProto& one = *tensor.add_external_data();
    one.set_key(key);
    one.set_value(value);
  };
  entry("location", "net.onnx.data");
  entry("offset", "4");
  entry("length", "16");
  EXPECT_EQ(array_in(read(), "bn1.bias").values, (std::vector<float>{1, 2, 3, 4}));

  onnx::TensorProto& other = array_named("bn1.weight");
  other = tensor;
  other.set_name("bn1.weight");
  expect_error(Failure::bad_data, {"share", "net.onnx.data"}, [&] { read(); });
  other.clear_external_data();
  other.clear_data_location();
  for (int i = 0; i < 4; ++i) other.add_float_data(1);

  tensor.mutable_external_data(1)->set_value("8");
  expect_error(Failure::bad_data, {"net.onnx", "bn1.bias", "net.onnx.data"}, [&] { read(); });
  for (const char* location : {"../net.onnx.data", "/etc/passwd", "", ".."}) {
    tensor.mutable_external_data(0)->set_value(location);
    expect_error(Failure::bad_data, {"net.onnx", "bn1.bias", location}, [&] { read(); });
  }
  std::filesystem::create_symlink("net.onnx.data", folder_.path() / "link");
  tensor.mutable_external_data(0)->set_value("link");
  expect_error(Failure::usage, {"link"}, [&] { read(); });
  tensor.mutable_external_data(0)->set_value("absent");
  expect_error(Failure::bad_data, {"bn1.bias"}, [&] { read(); });
}

// Each breaks the file in one way, and the message names what stands in `subjects`.
TEST_F(OnnxNetworkTest, what_cannot_be_computed_is_refused_by_node) {
  const auto refused = [&](std::initializer_list<std::string_view> subjects, const std::function<void()>& change) {
    const onnx::ModelProto whole = model_;
    change();
    expect_error(Failure::usage, subjects, [&] { read(); });
    model_ = whole;
  };
  const auto relu = [&](const std::string& kind) { return [this, kind] { replace(2, kind, {"b"}); }; };
  refused({"/Elu", "Conv", "Relu"}, relu("Elu"));
  refused({"/Softmax", "logits"}, relu("Softmax"));
  refused({"/Relu"}, [&] { node_at(2).set_domain("com.example"); });
  refused({"/Conv", "group", "3"}, [&] {
    last_ = &node_at(0);
    integer("group", 3);
  });
  refused({"/Conv", "dilat"}, [&] { ints(node_at(0), "dilations", {2, 2}); });
  for (const Dims& strides : {Dims{1}, Dims{1, 0}, Dims{1, 65537}, Dims{1, 1, 1}}) {
    refused({"/Conv", "strides"}, [&] { ints(node_at(0), "strides", strides); });
  }
  const auto refused_pads = [&](std::initializer_list<std::string_view> subjects, const Dims& pads) {
    refused(subjects, [&] {
      node_at(0).clear_attribute();
      ints(node_at(0), "pads", pads);
    });
  };
  refused_pads({"/Conv", "pads", "[0, 0, 1, 1]", "PyTorch"}, {0, 0, 1, 1});
  refused_pads({"/Conv", "pads", "[0, 1, 0, 2]", "PyTorch"}, {0, 1, 0, 2});
  refused_pads({"/Conv", "pads", "four"}, {1, 1});
  refused_pads({"/Conv", "pads", "four"}, {-1, 0, -1, 0});
  refused_pads({"/Conv", "pads of 3x0", "kernel of 3"}, {3, 0, 3, 0});
  refused_pads({"/Conv", "pads of 1x3", "kernel of 3"}, {1, 3, 1, 3});
  refused({"/Conv", "1x65537", "up to 65536"}, [&] {  // which no description of a network may have
    onnx::TensorProto& weight = array_named("conv1.weight");
    weight.clear_dims();
    for (const std::int64_t dim : {1, 1, 1, 65537}) weight.add_dims(dim);
    weight.mutable_float_data()->Resize(65537, 0);
  });
  refused({"/Conv", "rows and columns"}, [&] {
    array_named("conv1.weight").mutable_dims()->RemoveLast();
    array_named("conv1.weight").set_dims(2, 9);
  });
  for (const float epsilon : {0.0F, -1.0F, 2.0F, std::nanf("")}) {
    refused({"/BatchNormalization", "epsilon"}, [&] { number(node_at(1), "epsilon", epsilon); });
  }
  for (const float slope : {-0.5F, std::nanf(""), 1e30F}) {
    refused({"/LeakyRelu", "alpha"}, [&] {
      replace(2, "LeakyRelu", {"b"});
      number(node_at(2), "alpha", slope);
    });
  }
  refused({"/Clip", "3", "1"}, [&] {
    replace(2, "Clip", {"b", "low", "high"});
    scalar("low", 3);
    scalar("high", 1);
  });
  refused({"/Clip", "one number"}, [&] { replace(2, "Clip", {"b", "bn1.bias"}); });
  refused({"/Concat", "axis"}, [&] {
    replace(2, "Concat", {"b", "b"});
    integer("axis", 2);
  });
  refused({"/Transpose", "linear"}, [&] { replace(2, "Transpose", {"b"}); });
  refused({"/BatchNormalization", "negative"}, [&] { array_named("bn1.running_var").set_float_data(2, -1); });
  refused({"bn1.bias", "finite"}, [&] { array_named("bn1.bias").set_float_data(2, std::nanf("")); });
  refused({"fc.bias", "float"}, [&] { array_named("fc.bias").set_data_type(onnx::TensorProto::DOUBLE); });
  refused({"/Gemm", "fc.bias", "[9]", "[10]"}, [&] {
    array_named("fc.bias").set_dims(0, 9);
    array_named("fc.bias").mutable_float_data()->RemoveLast();
  });
  refused({"/Gemm", "flatten"}, [&] { node_at(5).set_input(0, "d"); });
  refused({"/Add", "bn1.bias"}, [&] { replace(2, "Add", {"b", "bn1.bias"}); });
  refused({"'bn1.weight'", "twice"}, [&] { node_at(1).set_input(2, "bn1.weight"); });
  refused({"/Gemm", "'input'"}, [&] {
    node_at(5).set_input(1, "input.weight");
    array_named("fc.weight").set_name("input.weight");
  });
  refused({"MaxPool", "images"}, [&] {
    node("MaxPool", {"x"}, "p");
    ints("kernel_shape", {2, 2});
    node_at(0).set_input(0, "p");
    for (int i = graph().node_size() - 1; i > 0; --i) graph().mutable_node()->SwapElements(i, i - 1);
  });
  refused({"Relu_6", "nothing reads"}, [&] { node("Relu", {"a"}, "unread"); });
  refused({"operator set", "12"}, [&] { model_.mutable_opset_import(0)->set_version(12); });
  refused({"2 outputs"}, [&] { graph().add_output()->set_name("e"); });
  refused({"'c'", "logits"}, [&] { graph().mutable_output(0)->set_name("c"); });
  refused({"several inputs"}, [&] { set_shape(*graph().add_input(), "x2", {0, 3, 8, 8}); });
  refused({"--image-size"}, [&] { set_shape(*graph().mutable_input(0), "x", {0, 3, 0, 0}); });
  refused({"4 channels"}, [&] { set_shape(*graph().mutable_input(0), "x", {0, 4, 8, 8}); });
  refused({"/Gemm", "Relu_3"}, [&] {
    node_at(5).set_input(1, "Relu_3.weight");
    array_named("fc.weight").set_name("Relu_3.weight");
  });
  refused({"bn1", "nothing reads"}, [&] { replace(2, "Relu", {"a"}); });
  refused({"/AveragePool", "window", "16"}, [&] {
    replace(2, "AveragePool", {"b"});
    ints("kernel_shape", {16, 16});
  });
  for (const auto& [name, values] :
       {std::pair("kernel_shape", Dims{3, 2}), std::pair("strides", Dims{1, 2}), std::pair("pads", Dims{1, 0, 1, 0})}) {
    refused({"/MaxPool", "same", name}, [&] {
      replace(2, "MaxPool", {"b"});
      if (std::string(name) != "kernel_shape") ints("kernel_shape", {2, 2});
      ints(name, values);
    });
  }
  refused({"/Unsqueeze", "torch.flatten"}, relu("Unsqueeze"));
  refused({"/Reshape", "torch.flatten"}, [&] {
    replace(4, "Reshape", {"d", "shape"});
    numbers("shape", {2, 2, 2});
  });
  refused({"/Gemm", "fc.weight"}, [&] {
    node("Gemm", {"y", "fc.weight", "fc.bias"}, "z");
    graph().mutable_output(0)->set_name("z");
  });
}

TEST_F(OnnxNetworkTest, damage_is_told_apart) {
  const auto damaged = [&](std::initializer_list<std::string_view> subjects, const std::function<void()>& change) {
    const onnx::ModelProto whole = model_;
    change();
    expect_error(Failure::bad_data, subjects, [&] { read(); });
    model_ = whole;
  };
  damaged({"'q'", "/Relu"}, [&] { node_at(2).set_input(0, "q"); });
  damaged({"'e'", "/Relu"}, [&] { node_at(2).set_input(0, "e"); });  // a cycle
  damaged({"two values", "'a'"}, [&] { node_at(1).set_output(0, "a"); });
  damaged({"two values", "'fc.bias'"}, [&] { node_at(1).set_output(0, "fc.bias"); });
  damaged({"two values", "'a'"}, [&] {
    replace(1, "Transpose", {"fc.weight"});
    node_at(1).set_output(0, "a");
  });
  damaged({"/MaxPool", "ceil_mode", "7"}, [&] {
    replace(2, "MaxPool", {"b"});
    ints("kernel_shape", {2, 2});
    integer("ceil_mode", 7);
  });
  damaged({"/Clip", "attributes"}, [&] {
    replace(2, "Clip", {"b"});
    number(node_at(2), "min", 0);
  });
  damaged({"/Relu", "output"}, [&] { node_at(2).clear_output(); });
  damaged({"/Relu", "inputs"}, [&] { node_at(2).clear_input(); });
  for (const std::int64_t channels : {std::int64_t{-4}, std::int64_t{0}, std::int64_t{1} << 40, INT64_MAX}) {
    damaged({"conv1.weight", "size"}, [&] { array_named("conv1.weight").set_dims(0, channels); });
  }
  damaged({"conv1.weight", "elements"}, [&] { array_named("conv1.weight").set_dims(0, 1000); });
  damaged({"/Conv", "pads", "type"}, [&] { node_at(0).mutable_attribute(0)->set_type(onnx::AttributeProto::FLOATS); });
  damaged({"no network"}, [&] { graph().clear_node(); });
  const std::filesystem::path path = folder_.path() / "net.onnx";
  write_file_atomically(path, std::string_view("\x08\x07garbage"));
  expect_error(Failure::bad_data, {"net.onnx"}, [&] { read_onnx_network(path, {}); });
  write_file_atomically(path, std::string_view(""));
  expect_error(Failure::bad_data, {"net.onnx"}, [&] { read_onnx_network(path, {}); });
}

TEST(OnnxPathTest, only_names_with_the_ending_are_files) {
  EXPECT_TRUE(is_onnx_path("net.onnx"));
  EXPECT_TRUE(is_onnx_path("/data/net.onnx"));
  EXPECT_FALSE(is_onnx_path("resnet18"));
  EXPECT_FALSE(is_onnx_path("net.onnx-blur"));
}

}  // namespace lockstep::onnx_network_test
