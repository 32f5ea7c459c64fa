// The table of the ONNX operators that can be read.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "network/onnx/onnx_converter.hpp"

namespace lockstep {

const std::map<std::string, OnnxConverter::Convert>& OnnxConverter::operators() {
  static const std::map<std::string, Convert> all = {{"Add", &OnnxConverter::add},
                                                     {"AveragePool", &OnnxConverter::average_pool},
                                                     {"BatchNormalization", &OnnxConverter::batch_norm},
                                                     {"Clip", &OnnxConverter::clip},
                                                     {"Concat", &OnnxConverter::concat},
                                                     {"Conv", &OnnxConverter::conv},
                                                     {"Div", &OnnxConverter::divide},
                                                     {"Dropout", &OnnxConverter::dropout},
                                                     {"Erf", &OnnxConverter::erf},
                                                     {"Flatten", &OnnxConverter::flatten},
                                                     {"Gelu", &OnnxConverter::gelu},
                                                     {"Gemm", &OnnxConverter::gemm},
                                                     {"GlobalAveragePool", &OnnxConverter::global_average_pool},
                                                     {"Identity", &OnnxConverter::identity},
                                                     {"LeakyRelu", &OnnxConverter::leaky_relu},
                                                     {"MatMul", &OnnxConverter::matmul},
                                                     {"MaxPool", &OnnxConverter::max_pool},
                                                     {"Mul", &OnnxConverter::multiply},
                                                     {"Pad", &OnnxConverter::pad},
                                                     {"ReduceMean", &OnnxConverter::reduce_mean},
                                                     {"Relu", &OnnxConverter::relu},
                                                     {"Reshape", &OnnxConverter::reshape},
                                                     {"Shape", &OnnxConverter::shape},
                                                     {"Sigmoid", &OnnxConverter::sigmoid},
                                                     {"Slice", &OnnxConverter::slice},
                                                     {"Sub", &OnnxConverter::subtract},
                                                     {"Tanh", &OnnxConverter::tanh},
                                                     {"Transpose", &OnnxConverter::transpose}};
  return all;
}

void OnnxConverter::refuse_operator() const {
  const std::string& kind = node_->kind();
  if (kind == "Softmax" || kind == "LogSoftmax") {
    node_->refuse("the loss includes it. Export a model that returns logits");
  }
  constexpr std::array<std::string_view, 4> of_shapes = {"Gather", "Shape", "Squeeze", "Unsqueeze"};
  if (std::ranges::count(of_shapes, kind) > 0 || operators().contains(kind)) {
    node_->refuse(
        "shapes cannot be computed. Export without dynamic_axes and dynamic_shapes, flatten by torch.flatten(x, 1), "
        "and "
        "use no layer that rearranges its input");
  }
  node_->refuse(
      "Lockstep has no such operator. It has Add, AveragePool, BatchNormalization, Clip, Concat, Conv, Div, Dropout, "
      "Flatten, Gelu, Gemm, GlobalAveragePool, Identity, LeakyRelu, MaxPool, Mul, ReduceMean, Relu, Sigmoid, Sub and "
      "Tanh");
}

void OnnxConverter::identity() { give(input(0)); }

void OnnxConverter::shape() {
  const ValueShape& shape = shape_of(node_at(0));
  const Integers of_map = {0, shape.channels, shape.height, shape.width};
  constants_.give_shape(*node_, shape.is_row() ? Integers{0, shape.channels} : of_map);
}

bool OnnxConverter::flag(const char* name) const {
  const std::int64_t value = node_->integer(name, 0);
  if (value != 0 && value != 1) node_->damaged(fmt::format("has a {} of {}", name, value));
  return value == 1;
}

}  // namespace lockstep
