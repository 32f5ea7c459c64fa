#include "network/onnx/onnx_node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace lockstep {

OnnxNode::OnnxNode(const OnnxFile& file, const onnx::NodeProto& node) : file_(file), node_(node) {
  if (node.output().empty()) damaged("has no output");
}

// "'/layer1/conv1/Conv' (Conv)"
std::string OnnxNode::label() const {
  const std::string& name = node_.name().empty() && !node_.output().empty() ? node_.output(0) : node_.name();
  return fmt::format("'{}' ({})", short_text(name), short_text(node_.op_type()));
}

void OnnxNode::damaged(const std::string& what) const { file_.damaged(fmt::format("node {} {}", label(), what)); }

void OnnxNode::refuse(const std::string& what) const { file_.unusable(fmt::format("node {}: {}", label(), what)); }

const std::string& OnnxNode::input(int index) const {
  if (!has_input(index)) damaged("has too few inputs");
  return node_.input(index);
}

// Null if it is absent.
const onnx::AttributeProto* OnnxNode::typed(const char* name, onnx::AttributeProto::AttributeType type) const {
  const onnx::AttributeProto* const found = attribute(name);
  if (found != nullptr && found->type() != type && found->type() != onnx::AttributeProto::UNDEFINED) {
    damaged(fmt::format("has an attribute {} of another type", name));
  }
  return found;
}

const onnx::AttributeProto* OnnxNode::attribute(const char* name) const {
  const auto& all = node_.attribute();
  const auto found = std::ranges::find(all, name, &onnx::AttributeProto::name);
  return found == all.end() ? nullptr : &*found;
}

std::int64_t OnnxNode::integer(const char* name, std::int64_t otherwise) const {
  const onnx::AttributeProto* const found = typed(name, onnx::AttributeProto::INT);
  return found == nullptr ? otherwise : found->i();
}

float OnnxNode::number(const char* name, float otherwise) const {
  const onnx::AttributeProto* const found = typed(name, onnx::AttributeProto::FLOAT);
  return found == nullptr ? otherwise : found->f();
}

Integers OnnxNode::integers(const char* name, Integers otherwise) const {
  const onnx::AttributeProto* const found = typed(name, onnx::AttributeProto::INTS);
  return found == nullptr ? std::move(otherwise) : Integers(found->ints().begin(), found->ints().end());
}

std::vector<float> OnnxNode::numbers(const char* name) const {
  const onnx::AttributeProto* const found = typed(name, onnx::AttributeProto::FLOATS);
  return found == nullptr ? std::vector<float>() : std::vector<float>(found->floats().begin(), found->floats().end());
}

void OnnxNode::require_integer(const char* name, std::int64_t only, std::int64_t otherwise) const {
  const std::int64_t value = integer(name, otherwise);
  if (value != only) refuse(fmt::format("{} is {}. Only {} is possible", name, value, only));
}

void OnnxNode::require_number(const char* name, float only, float otherwise) const {
  const float value = number(name, otherwise);
  const bool is_it = std::abs(value - only) <= 1e-6F * only;
  if (!is_it) refuse(fmt::format("{} is {}. Only {} is possible", name, value, only));
}

Size2d OnnxNode::size(const char* name, std::int64_t otherwise) const {
  const Integers values = integers(name, {otherwise, otherwise});
  const auto is_possible = [](std::int64_t value) { return value >= 1 && value <= largest_number; };
  if (values.size() != 2 || !std::ranges::all_of(values, is_possible)) {
    refuse(
        fmt::format("{} is {}. Only two numbers from 1 to {} are possible", name, short_text(values), largest_number));
  }
  return {values[0], values[1]};
}

// ONNX lists the pads before rows and columns, then those behind them.
Size2d OnnxNode::pads() const {
  const Integers values = integers("pads", {0, 0, 0, 0});
  const auto is_possible = [](std::int64_t value) { return value >= 0 && value <= largest_number; };
  if (values.size() != 4 || !std::ranges::all_of(values, is_possible)) {
    refuse(fmt::format("pads is {}. Only four numbers from 0 to {} are possible", short_text(values), largest_number));
  }
  if (values[0] != values[2] || values[1] != values[3]) {
    refuse(
        fmt::format("pads is {}. Only equal pads at both ends of a dimension are possible. Pad by the padding of "
                    "PyTorch's layers",
                    short_text(values)));
  }
  return {values[0], values[1]};
}

OnnxNode::Window OnnxNode::window() const {
  const onnx::AttributeProto* const automatic = attribute("auto_pad");
  if (automatic != nullptr && automatic->s() != "NOTSET") refuse("auto_pad is not possible. State the pads");
  if (size("dilations", 1) != 1) refuse("it is dilated. Only dilations of 1 are possible");
  return {size("strides", 1), pads()};
}

}  // namespace lockstep
