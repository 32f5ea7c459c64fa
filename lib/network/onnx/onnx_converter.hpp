// Turns the nodes of an ONNX file into operations, one after the other.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "network/graph.hpp"
#include "network/onnx/onnx_constants.hpp"
#include "network/onnx/onnx_file.hpp"
#include "network/onnx/onnx_network.hpp"
#include "network/onnx/onnx_node.hpp"
#include "network/onnx/onnx_parameters.hpp"

namespace lockstep {

class OnnxConverter {
 public:
  // `file` outlives this. `images` as in read_onnx_network(); all functions throw as it does.
  OnnxConverter(const OnnxFile& file, std::optional<ValueShape> images);

  OnnxNetwork convert();

 private:
  using Convert = void (OnnxConverter::*)();

  // A value of the ONNX graph that depends on the images.
  struct ImageValue {  // the input, while it may still be normalized
    enum class State : std::uint8_t { raw, centred, normalized } state = State::raw;
  };
  struct NodeValue {
    std::size_t node;
  };
  struct MeanValue {  // of a node's map, for ONNX [n, c, 1, 1]: a row if it is flattened, otherwise a map of one pixel
    std::size_t node;
  };
  struct SlicedValue {  // every stride-th pixel of a node's map, which a Pad may follow
    std::size_t node;
    std::int64_t stride;
  };
  struct PaddedValue {  // a node's map with zeros around it, which an AveragePool must follow
    std::size_t node;
    std::int64_t padding;
  };
  struct GeluPart {  // of the GELU of a node's value x
    enum class Step : std::uint8_t {
      quotient,  // x / sqrt(2)
      erf,       // erf(x / sqrt(2))
      factor,    // 1 + erf(x / sqrt(2))
      product    // x * (1 + erf(x / sqrt(2)))
    } step;
    std::size_t node;
  };
  using KnownValue = std::variant<ImageValue, NodeValue, MeanValue, SlicedValue, PaddedValue, GeluPart>;

  ValueShape input_shape(std::optional<ValueShape> wanted);
  void require_read(std::size_t output) const;
  void add_warnings();

  // ---- values; `index` counts the inputs of the node that is converted
  void define(const std::string& name, KnownValue value);
  void give(KnownValue value) { define(node_->output(), value); }
  void give_node(const Operation& operation, std::vector<std::size_t> inputs, const std::string& name = "");
  std::size_t added(const Operation& operation, std::vector<std::size_t> inputs, const std::string& name);
  const KnownValue& input(int index) const;
  std::size_t node_at(int index);  // that computes the input
  op::AveragePool mean_window(const MeanValue& mean) const;
  const ValueShape& shape_of(std::size_t node) const { return network_.graph.node(node).shape; }
  const onnx::TensorProto* as_constant(int index) const;  // null: it is none
  const onnx::TensorProto& constant_at(int index) const;
  std::string layer_name(const onnx::TensorProto& weight);
  NamedArray& keep(const std::string& name, const onnx::TensorProto& tensor, const Integers& dims);

  // ---- operators (onnx_operators.cpp)
  static const std::map<std::string, Convert>& operators();
  [[noreturn]] void refuse_operator() const;
  bool computes_array() const;
  void set_array_aside();
  void add();
  void average_pool();
  void batch_norm();
  void clip();
  void concat();
  void conv();
  void divide();
  void dropout();
  void erf();
  void flatten();
  void gelu();
  void gemm();
  void global_average_pool();
  void identity();
  void leaky_relu();
  void matmul();
  void max_pool();
  void multiply();
  void pad();
  void reduce_mean();
  void relu();
  void shape();
  void reshape();
  void sigmoid();
  void slice();
  void subtract();
  void tanh();
  void transpose();

  bool flag(const char* name) const;
  Pool2d pool_window() const;
  bool is_blur(const onnx::TensorProto& weight, const ValueShape& shape, const OnnxNode::Window& window) const;
  void pool_mean(bool keeps_dims);
  void give_flat();
  void give_linear(const onnx::TensorProto& weight, bool is_transposed, bool has_bias);
  // Of Add, Sub, Mul and Div with an array.
  std::vector<float> constants_at(int index, std::size_t x);
  void give_shifted(int array, float sign);
  float bound_at(int index, float otherwise) const;
  void normalize(ImageValue::State from, ImageValue::State to, std::vector<float>& values);

  // ---- parts of a GELU (onnx_gelu.cpp)
  const GeluPart* gelu_part(int index, GeluPart::Step step) const;  // null: the input is none, or another
  bool is_number(int index, float number) const;                    // whether the input is an array of this one number
  // Whether the node is one of a GELU, whose value is then defined.
  bool add_in_gelu();
  bool divide_in_gelu();
  bool multiply_in_gelu();
  std::size_t node_of(const GeluPart& part);

  const OnnxFile& file_;
  std::string image_name_;
  OnnxNetwork network_;
  std::map<std::string, KnownValue> values_;
  OnnxConstants constants_;
  std::map<std::string, const onnx::TensorProto*> transposed_;  // weights, by the name of what Transpose gives
  OnnxParameters parameters_;
  // For warnings; empty: none.
  std::string constant_name_;       // an array of the file that is multiplied or added, although it may be a parameter
  std::string momentum_;            // what is said of a norm with another momentum
  const OnnxNode* node_ = nullptr;  // the one that is converted
};

}  // namespace lockstep
