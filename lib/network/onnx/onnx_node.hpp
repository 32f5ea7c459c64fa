// A node of an ONNX file: its inputs and attributes, checked, and messages that name it.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "device/ops.hpp"
#include "network/onnx/onnx_file.hpp"

namespace lockstep {

using Integers = std::vector<std::int64_t>;

class OnnxNode {
 public:
  static constexpr std::int64_t largest_number = 65536;  // of windows, strides and pads

  // Both outlive this. Throws as OnnxFile::damaged() if the node has no output.
  OnnxNode(const OnnxFile& file, const onnx::NodeProto& node);

  const std::string& kind() const { return node_.op_type(); }
  bool is_standard() const { return node_.domain().empty() || node_.domain() == "ai.onnx"; }
  const std::string& output() const { return node_.output(0); }
  int input_count() const { return node_.input_size(); }
  bool has_input(int index) const { return index < node_.input_size() && !node_.input(index).empty(); }
  const std::string& input(int index) const;  // throws as damaged() if it is absent

  // Error(bad_data): "... node '/layer1/Conv' (Conv) <what>. ..."; Error(usage): "... node '/layer1/Conv' (Conv):
  // <what>."
  [[noreturn]] void damaged(const std::string& what) const;
  [[noreturn]] void refuse(const std::string& what) const;

  const onnx::AttributeProto* attribute(const char* name) const;  // null: absent
  std::int64_t integer(const char* name, std::int64_t otherwise) const;
  float number(const char* name, float otherwise) const;
  Integers integers(const char* name, Integers otherwise) const;
  std::vector<float> numbers(const char* name) const;  // empty if it is absent
  // Throw as refuse() if the attribute has another value than `only`.
  void require_integer(const char* name, std::int64_t only, std::int64_t otherwise) const;
  void require_number(const char* name, float only, float otherwise) const;

  // A list of two numbers from 1 on, for rows and columns. Throws as refuse().
  Size2d size(const char* name, std::int64_t otherwise) const;
  struct Window {
    Size2d stride;
    Size2d padding;
  };
  Window window() const;  // of a convolution or a pooling

 private:
  std::string label() const;
  Size2d pads() const;
  const onnx::AttributeProto* typed(const char* name, onnx::AttributeProto::AttributeType type) const;

  const OnnxFile& file_;
  const onnx::NodeProto& node_;
};

}  // namespace lockstep
