#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <string>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "network/written_onnx.hpp"
#include "support/messages.hpp"

namespace lockstep::onnx_refusals_test {

using OnnxRefusalsTest = WrittenOnnx;

TEST_F(OnnxRefusalsTest, impossible_shapes_are_refused) {
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
TEST_F(OnnxRefusalsTest, an_unknown_operator_is_named_before_its_arrays) {
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

// Each breaks the file in one way, and the message names what stands in `subjects`.
TEST_F(OnnxRefusalsTest, what_cannot_be_computed_is_refused_by_node) {
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

TEST_F(OnnxRefusalsTest, damage_is_told_apart) {
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

TEST_F(OnnxRefusalsTest, computed_arrays_cannot_fill_the_memory) {
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

}  // namespace lockstep::onnx_refusals_test
