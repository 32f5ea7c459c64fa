// Runs a graph of ONNX by the words of its operators' specification, in plain loops: a reader that knows nothing of
// our layers.
#pragma once

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockstep::test {

struct OnnxArray {
  std::vector<std::int64_t> dims;
  std::vector<float> values;

  float at(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    return values[static_cast<std::size_t>(((n * dims[1] + c) * dims[2] + h) * dims[3] + w)];
  }
};

class OnnxEvaluator {
 public:
  explicit OnnxEvaluator(const onnx::GraphProto& graph) : graph_(graph) {
    for (const onnx::TensorProto& tensor : graph.initializer()) {
      const std::vector<std::int64_t> dims(tensor.dims().begin(), tensor.dims().end());
      if (tensor.data_type() == onnx::TensorProto::INT64) {
        numbers_[tensor.name()] = unpacked<std::int64_t>(tensor);
      } else {
        values_[tensor.name()] = {dims, unpacked<float>(tensor)};
      }
    }
  }

  OnnxArray run(const OnnxArray& input) {
    values_[graph_.input(0).name()] = input;
    for (const onnx::NodeProto& node : graph_.node()) values_[node.output(0)] = result(node);
    return values_.at(graph_.output(0).name());
  }

 private:
  using Ints = std::vector<std::int64_t>;

  template <typename T>
  static std::vector<T> unpacked(const onnx::TensorProto& tensor) {
    std::vector<T> values(tensor.raw_data().size() / sizeof(T));
    std::memcpy(values.data(), tensor.raw_data().data(), tensor.raw_data().size());
    return values;
  }
  static const onnx::AttributeProto* find(const onnx::NodeProto& node, const std::string& name) {
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.name() == name) return &attribute;
    }
    return nullptr;
  }
  static Ints ints(const onnx::NodeProto& node, const std::string& name) {
    const auto& found = find(node, name)->ints();
    return {found.begin(), found.end()};
  }
  const OnnxArray& in(const onnx::NodeProto& node, int index) const { return values_.at(node.input(index)); }

  OnnxArray result(const onnx::NodeProto& node) const {
    const std::string& kind = node.op_type();
    if (kind == "Conv") return conv(node);
    if (kind == "MaxPool") return windows(node, in(node, 0).dims[1]);
    if (kind == "BatchNormalization") return norm(node);
    if (kind == "Gemm") return gemm(node);
    if (kind == "Slice") return slice(node);
    if (kind == "Pad") return pad(node);
    if (kind == "GlobalAveragePool") return mean(in(node, 0));
    if (kind == "Identity") return in(node, 0);
    if (kind == "Relu") return by_element(in(node, 0), [](float x) { return std::max(x, 0.0F); });
    if (kind == "Erf") return by_element(in(node, 0), [](float x) { return std::erf(x); });
    if (kind == "Mul") return pairwise(node, std::multiplies<>());
    if (kind == "Add") return pairwise(node, std::plus<>());
    if (kind == "Sub") return pairwise(node, std::minus<>());
    if (kind == "Div") return pairwise(node, std::divides<>());
    if (kind == "Flatten" && find(node, "axis")->i() == 1) {
      OnnxArray y = in(node, 0);
      const std::int64_t rows = y.dims[0];
      y.dims = {rows, static_cast<std::int64_t>(y.values.size()) / rows};
      return y;
    }
    throw std::runtime_error("no operator " + kind);
  }

  template <typename Function>
  static OnnxArray by_element(OnnxArray x, Function function) {
    for (float& value : x.values) value = function(value);
    return x;
  }

  // The second of the same shape, one number, or [1, c, 1, 1].
  template <typename Function>
  OnnxArray pairwise(const onnx::NodeProto& node, Function function) const {
    OnnxArray y = in(node, 0);
    const OnnxArray& b = in(node, 1);
    const std::size_t plane = b.dims == y.dims || b.dims.empty() ? 1 : static_cast<std::size_t>(y.dims[2] * y.dims[3]);
    for (std::size_t i = 0; i < y.values.size(); ++i) {
      y.values[i] = function(y.values[i], b.values[i / plane % b.values.size()]);
    }
    return y;
  }

  // Of convolutions, with weights, and of the maximum, without.
  OnnxArray windows(const onnx::NodeProto& node, std::int64_t channels, const OnnxArray* weights = nullptr) const {
    const OnnxArray& x = in(node, 0);
    const std::int64_t groups = find(node, "group") == nullptr ? 1 : find(node, "group")->i();
    const Ints kernel = ints(node, "kernel_shape"), stride = ints(node, "strides"), pads = ints(node, "pads");
    const auto out = [&](std::size_t axis) {
      return (x.dims[axis + 2] + pads[axis] + pads[axis + 2] - kernel[axis]) / stride[axis] + 1;
    };
    OnnxArray y{{x.dims[0], channels, out(0), out(1)}, {}};
    for (std::int64_t n = 0; n < y.dims[0]; ++n) {
      for (std::int64_t c = 0; c < channels; ++c) {
        for (std::int64_t h = 0; h < y.dims[2]; ++h) {
          for (std::int64_t w = 0; w < y.dims[3]; ++w) {
            double sum = 0;
            float largest = -INFINITY;
            for (std::int64_t i = 0; i < kernel[0]; ++i) {
              for (std::int64_t j = 0; j < kernel[1]; ++j) {
                const std::int64_t row = h * stride[0] - pads[0] + i, column = w * stride[1] - pads[1] + j;
                if (row < 0 || row >= x.dims[2] || column < 0 || column >= x.dims[3]) continue;
                if (weights == nullptr) {
                  largest = std::max(largest, x.at(n, c, row, column));
                  continue;
                }
                const std::int64_t inputs = weights->dims[1], first = c / (channels / groups) * inputs;
                for (std::int64_t k = 0; k < inputs; ++k) {
                  sum += static_cast<double>(weights->at(c, k, i, j)) * x.at(n, first + k, row, column);
                }
              }
            }
            y.values.push_back(weights == nullptr ? largest : static_cast<float>(sum));
          }
        }
      }
    }
    return y;
  }

  OnnxArray conv(const onnx::NodeProto& node) const {
    const OnnxArray& weights = in(node, 1);
    OnnxArray y = windows(node, weights.dims[0], &weights);
    if (node.input_size() == 2) return y;
    const auto plane = static_cast<std::size_t>(y.dims[2] * y.dims[3]);
    const std::vector<float>& bias = in(node, 2).values;
    for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] += bias[i / plane % bias.size()];
    return y;
  }

  OnnxArray norm(const onnx::NodeProto& node) const {
    OnnxArray y = in(node, 0);
    const auto plane = static_cast<std::size_t>(y.dims[2] * y.dims[3]);
    const float epsilon = find(node, "epsilon")->f();
    for (std::size_t i = 0; i < y.values.size(); ++i) {
      const std::size_t c = i / plane % static_cast<std::size_t>(y.dims[1]);
      const auto of = [&](int index) { return in(node, index).values[c]; };
      y.values[i] = (y.values[i] - of(3)) / std::sqrt(of(4) + epsilon) * of(1) + of(2);
    }
    return y;
  }

  static OnnxArray mean(const OnnxArray& x) {
    OnnxArray y{{x.dims[0], x.dims[1], 1, 1}, {}};
    const auto plane = static_cast<std::size_t>(x.dims[2] * x.dims[3]);
    for (auto from = x.values.begin(); from != x.values.end(); from += static_cast<std::ptrdiff_t>(plane)) {
      y.values.push_back(static_cast<float>(std::accumulate(from, from + static_cast<std::ptrdiff_t>(plane), 0.0) /
                                            static_cast<double>(plane)));
    }
    return y;
  }

  // transB: b is [out, in].
  OnnxArray gemm(const onnx::NodeProto& node) const {
    const OnnxArray& x = in(node, 0);
    const OnnxArray& b = in(node, 1);
    if (find(node, "transB")->i() != 1) throw std::runtime_error("another Gemm");
    OnnxArray y{{x.dims[0], b.dims[0]}, {}};
    for (std::int64_t n = 0; n < x.dims[0]; ++n) {
      for (std::int64_t o = 0; o < b.dims[0]; ++o) {
        y.values.push_back(std::inner_product(x.values.begin() + n * x.dims[1], x.values.begin() + (n + 1) * x.dims[1],
                                              b.values.begin() + o * b.dims[1],
                                              in(node, 2).values[static_cast<std::size_t>(o)]));
      }
    }
    return y;
  }

  // Of rows and columns, from the first on.
  OnnxArray slice(const onnx::NodeProto& node) const {
    const OnnxArray& x = in(node, 0);
    const Ints& steps = numbers_.at(node.input(4));
    const bool is_plain = numbers_.at(node.input(1)) == Ints{0, 0} && numbers_.at(node.input(3)) == Ints{2, 3};
    if (!is_plain || numbers_.at(node.input(2))[0] < x.dims[2]) throw std::runtime_error("another Slice");
    OnnxArray y{{x.dims[0], x.dims[1], (x.dims[2] + steps[0] - 1) / steps[0], (x.dims[3] + steps[1] - 1) / steps[1]},
                {}};
    for (std::int64_t n = 0; n < y.dims[0]; ++n) {
      for (std::int64_t c = 0; c < y.dims[1]; ++c) {
        for (std::int64_t h = 0; h < y.dims[2]; ++h) {
          for (std::int64_t w = 0; w < y.dims[3]; ++w) y.values.push_back(x.at(n, c, h * steps[0], w * steps[1]));
        }
      }
    }
    return y;
  }

  // Zeros around x: beginnings of all axes, then their ends.
  OnnxArray pad(const onnx::NodeProto& node) const {
    const OnnxArray& x = in(node, 0);
    const Ints& pads = numbers_.at(node.input(1));
    OnnxArray y;
    for (std::size_t axis = 0; axis < 4; ++axis) y.dims.push_back(x.dims[axis] + pads[axis] + pads[axis + 4]);
    for (std::int64_t n = 0; n < y.dims[0]; ++n) {
      for (std::int64_t c = 0; c < y.dims[1]; ++c) {
        for (std::int64_t h = 0; h < y.dims[2]; ++h) {
          for (std::int64_t w = 0; w < y.dims[3]; ++w) {
            const Ints place = {n - pads[0], c - pads[1], h - pads[2], w - pads[3]};
            bool is_inside = true;
            for (std::size_t axis = 0; axis < 4; ++axis) {
              is_inside = is_inside && place[axis] >= 0 && place[axis] < x.dims[axis];
            }
            y.values.push_back(is_inside ? x.at(place[0], place[1], place[2], place[3]) : 0);
          }
        }
      }
    }
    return y;
  }

  const onnx::GraphProto& graph_;
  std::map<std::string, OnnxArray> values_;
  std::map<std::string, Ints> numbers_;
};

}  // namespace lockstep::test
