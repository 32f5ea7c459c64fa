// The arrays of an ONNX file: those in the file, and those that its nodes compute from others, as PyTorch writes them
// for shapes and for biases of zero.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "network/onnx/onnx_file.hpp"
#include "network/onnx/onnx_node.hpp"

namespace lockstep {

class OnnxConstants {
 public:
  // `file` outlives this. Throws as OnnxFile::damaged() if two arrays have one name.
  explicit OnnxConstants(const OnnxFile& file);

  // Whether the node's value is an array. Throws as OnnxFile::damaged(). If the array cannot be computed, it is set
  // aside, because the node that reads it may have a better reason to be refused, such as an unknown operator.
  bool compute(const OnnxNode& node);
  // The value of a Shape of a map or row, without the batch, which is 0: so Reshape leaves it as it is.
  void give_shape(const OnnxNode& node, const Integers& dims);
  void set_aside(const OnnxNode& node, const Error& reason);
  bool is_array(const std::string& name) const;  // also if it has been set aside
  // Throws the reason if the array of this name has been set aside.
  void require_computed(const std::string& name) const;

  // Null: not an array.
  const onnx::TensorProto* find(const std::string& name) const;
  // Whether it is an array of the file itself, such as a parameter or a buffer of PyTorch, and not one of its nodes.
  bool is_in_file(const std::string& name) const;
  // Whether it is a list of `count` zeros that nodes compute: no parameter.
  bool is_computed_zero(const std::string& name, std::int64_t count) const;

 private:
  struct Array {
    const onnx::TensorProto* tensor;
    bool is_in_file;
  };
  using Compute = void (OnnxConstants::*)(const OnnxNode&);
  static const std::map<std::string, Compute>& table();

  void define(const std::string& name, Array array);
  const onnx::TensorProto& input(const OnnxNode& node, int index) const;
  void give(const OnnxNode& node, const Integers& dims, const std::vector<float>& values);
  void give(const OnnxNode& node, const Integers& dims, const Integers& values);
  onnx::TensorProto& computed(const OnnxNode& node, onnx::TensorProto::DataType type, const Integers& dims);

  void cast(const OnnxNode& node);
  void to_float(const OnnxNode& node);
  void concat(const OnnxNode& node);
  void constant(const OnnxNode& node);
  void expand(const OnnxNode& node);
  void gather(const OnnxNode& node);
  void identity(const OnnxNode& node);
  void reshape(const OnnxNode& node);
  void shape(const OnnxNode& node);
  void unsqueeze(const OnnxNode& node);

  const OnnxFile& file_;
  std::map<std::string, Array> arrays_;
  std::map<std::string, Error> set_aside_;
  std::deque<onnx::TensorProto> computed_;
  std::int64_t computed_elements_ = 0;
};

}  // namespace lockstep
