#include "network/onnx/onnx_network.hpp"

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "network/onnx/onnx_file.hpp"
#include "network/written_onnx.hpp"
#include "support/messages.hpp"

namespace lockstep::onnx_network_test {

using OnnxNetworkTest = WrittenOnnx;

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

TEST_F(OnnxNetworkTest, operators_may_follow_each_other_in_any_order) {
  replace(1, "Sigmoid", {"a"});
  replace(2, "Add", {"b", "a"});
  const OnnxNetwork network = read();
  EXPECT_NE(network.graph.node(2).as<op::Sigmoid>(), nullptr);
  EXPECT_EQ(network.graph.node(3).inputs, (std::vector<std::size_t>{2, 1}));
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

TEST(OnnxPathTest, only_names_with_the_ending_are_files) {
  EXPECT_TRUE(is_onnx_path("net.onnx"));
  EXPECT_TRUE(is_onnx_path("/data/net.onnx"));
  EXPECT_FALSE(is_onnx_path("resnet18"));
  EXPECT_FALSE(is_onnx_path("net.onnx-blur"));
}

}  // namespace lockstep::onnx_network_test
