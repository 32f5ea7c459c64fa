#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "network/written_onnx.hpp"
#include "support/messages.hpp"

namespace lockstep::onnx_operators_test {

using OnnxOperatorsTest = WrittenOnnx;

TEST_F(OnnxOperatorsTest, rows_and_columns_of_a_convolution_may_differ) {
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

TEST_F(OnnxOperatorsTest, a_weight_of_in_by_out_is_turned) {
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

TEST_F(OnnxOperatorsTest, the_mean_over_space_has_several_forms) {
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
TEST_F(OnnxOperatorsTest, a_mean_over_the_map_that_is_not_flattened_is_a_map_of_one_pixel) {
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

TEST_F(OnnxOperatorsTest, reads_the_numbers_of_activations_norms_and_pooling) {
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

TEST_F(OnnxOperatorsTest, constants_multiply_and_add) {
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

TEST_F(OnnxOperatorsTest, reads_gelu_as_an_operator_and_as_pytorch_composes_it) {
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

TEST_F(OnnxOperatorsTest, parts_of_a_gelu_and_approximations_are_refused) {
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

TEST_F(OnnxOperatorsTest, reads_dropout_and_norms_of_rows) {
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

TEST_F(OnnxOperatorsTest, an_average_takes_the_zeros_of_a_pad_into_account) {
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

TEST_F(OnnxOperatorsTest, a_linear_layer_may_have_no_bias) {
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

TEST_F(OnnxOperatorsTest, a_normalization_at_the_input_is_told_apart) {
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

}  // namespace lockstep::onnx_operators_test
