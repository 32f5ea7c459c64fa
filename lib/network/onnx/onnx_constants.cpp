#include "network/onnx/onnx_constants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace lockstep {
namespace {

constexpr std::int64_t most_elements = 1 << 22;  // of all computed arrays

}  // namespace

OnnxConstants::OnnxConstants(const OnnxFile& file) : file_(file) {
  for (const onnx::TensorProto& tensor : file.graph().initializer()) define(tensor.name(), {&tensor, true});
}

const std::map<std::string, OnnxConstants::Compute>& OnnxConstants::table() {
  static const std::map<std::string, Compute> all = {
      {"Cast", &OnnxConstants::cast},     {"CastLike", &OnnxConstants::to_float},
      {"Concat", &OnnxConstants::concat}, {"Constant", &OnnxConstants::constant},
      {"Expand", &OnnxConstants::expand}, {"Identity", &OnnxConstants::identity},
      {"Gather", &OnnxConstants::gather}, {"Reshape", &OnnxConstants::reshape},
      {"Shape", &OnnxConstants::shape},   {"Unsqueeze", &OnnxConstants::unsqueeze}};
  return all;
}

bool OnnxConstants::compute(const OnnxNode& node) {
  const auto found = table().find(node.kind());
  if (found == table().end() || (node.input_count() == 0 && node.kind() != "Constant")) return false;
  for (int i = 0; i < node.input_count(); ++i) {  // what CastLike imitates may be a map
    if (!is_array(node.input(i)) && (i == 0 || node.kind() != "CastLike")) return false;
  }
  try {
    for (int i = 0; i < node.input_count(); ++i) require_computed(node.input(i));
    (this->*found->second)(node);
  } catch (const Error& error) {
    if (error.failure() != Failure::usage) throw;
    set_aside(node, error);
  }
  return true;
}

void OnnxConstants::set_aside(const OnnxNode& node, const Error& reason) { set_aside_.emplace(node.output(), reason); }

bool OnnxConstants::is_array(const std::string& name) const {
  return arrays_.contains(name) || set_aside_.contains(name);
}

void OnnxConstants::require_computed(const std::string& name) const {
  const auto found = set_aside_.find(name);
  if (found != set_aside_.end()) throw found->second;
}

const onnx::TensorProto* OnnxConstants::find(const std::string& name) const {
  const auto found = arrays_.find(name);
  return found == arrays_.end() ? nullptr : found->second.tensor;
}

bool OnnxConstants::is_in_file(const std::string& name) const {
  const auto found = arrays_.find(name);
  return found != arrays_.end() && found->second.is_in_file;
}

bool OnnxConstants::is_computed_zero(const std::string& name, std::int64_t count) const {
  const auto found = arrays_.find(name);
  if (found == arrays_.end() || found->second.is_in_file) return false;
  if (!std::ranges::equal(found->second.tensor->dims(), Integers{count})) return false;
  const std::vector<float> values = file_.floats(*found->second.tensor);
  return std::ranges::all_of(values, [](float value) { return value == 0; });
}

void OnnxConstants::define(const std::string& name, Array array) {
  if (!arrays_.emplace(name, array).second) {
    file_.damaged(fmt::format("two values have the name '{}'", short_text(name)));
  }
}

const onnx::TensorProto& OnnxConstants::input(const OnnxNode& node, int index) const {
  const onnx::TensorProto* const tensor = find(node.input(index));
  if (tensor == nullptr) node.refuse(fmt::format("its input {} is not an array in the file", index));
  return *tensor;
}

onnx::TensorProto& OnnxConstants::computed(const OnnxNode& node, onnx::TensorProto::DataType type,
                                           const Integers& dims) {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= dim;  // limited by the callers
  computed_elements_ += count;
  if (computed_elements_ > most_elements) node.refuse("the arrays that nodes compute become too large");
  onnx::TensorProto& tensor = computed_.emplace_back();
  tensor.set_name(node.output());
  tensor.set_data_type(type);
  for (const std::int64_t dim : dims) tensor.add_dims(dim);
  define(node.output(), {&tensor, false});
  return tensor;
}

void OnnxConstants::give(const OnnxNode& node, const Integers& dims, const std::vector<float>& values) {
  onnx::TensorProto& tensor = computed(node, onnx::TensorProto::FLOAT, dims);
  for (const float value : values) tensor.add_float_data(value);
}

void OnnxConstants::give(const OnnxNode& node, const Integers& dims, const Integers& values) {
  onnx::TensorProto& tensor = computed(node, onnx::TensorProto::INT64, dims);
  for (const std::int64_t value : values) tensor.add_int64_data(value);
}

void OnnxConstants::constant(const OnnxNode& node) {
  const onnx::AttributeProto* const value = node.attribute("value");
  if (value != nullptr && value->has_t()) {
    define(node.output(), {&value->t(), false});
  } else if (node.attribute("value_int") != nullptr) {
    give(node, {}, Integers{node.integer("value_int", 0)});
  } else if (node.attribute("value_ints") != nullptr) {
    const Integers values = node.integers("value_ints", {});
    give(node, {std::ssize(values)}, values);
  } else if (node.attribute("value_float") != nullptr) {
    give(node, {}, std::vector<float>{node.number("value_float", 0)});
  } else if (node.attribute("value_floats") != nullptr) {
    const std::vector<float> values = node.numbers("value_floats");
    give(node, {std::ssize(values)}, values);
  } else {
    node.refuse("only arrays of float and int64 are possible");
  }
}

void OnnxConstants::identity(const OnnxNode& node) { define(node.output(), arrays_.at(node.input(0))); }

void OnnxConstants::cast(const OnnxNode& node) {
  node.require_integer("to", onnx::TensorProto::FLOAT, 0);
  to_float(node);
}

// CastLike: to the type of a map, which is float.
void OnnxConstants::to_float(const OnnxNode& node) {
  const onnx::TensorProto& tensor = input(node, 0);
  if (tensor.data_type() != onnx::TensorProto::INT64) return identity(node);
  const Integers values = file_.integers(tensor);
  give(node, Integers(tensor.dims().begin(), tensor.dims().end()), std::vector<float>(values.begin(), values.end()));
}

void OnnxConstants::shape(const OnnxNode& node) {
  const onnx::TensorProto& tensor = input(node, 0);
  give_shape(node, Integers(tensor.dims().begin(), tensor.dims().end()));
}

void OnnxConstants::give_shape(const OnnxNode& node, const Integers& dims) {
  const std::int64_t start = node.integer("start", 0);
  const std::int64_t end = std::min<std::int64_t>(node.integer("end", std::ssize(dims)), std::ssize(dims));
  if (start < 0 || end < start) node.refuse("its start and end are not possible");
  give(node, {end - start}, Integers(dims.begin() + start, dims.begin() + end));
}

// One number of a list, as of a shape.
void OnnxConstants::gather(const OnnxNode& node) {
  node.require_integer("axis", 0, 0);
  const Integers values = file_.integers(input(node, 0));
  const onnx::TensorProto& place = input(node, 1);
  const Integers places = file_.integers(place);
  if (places.size() != 1 || places[0] < 0 || places[0] >= std::ssize(values)) {
    node.refuse("only one number of a list can be taken");
  }
  give(node, Integers(place.dims().begin(), place.dims().end()), Integers{values[static_cast<std::size_t>(places[0])]});
}

// A number becomes a list.
void OnnxConstants::unsqueeze(const OnnxNode& node) {
  const onnx::TensorProto& number = input(node, 0);
  if (number.dims_size() != 0) node.refuse("only a number can become a list");
  give(node, {1}, file_.integers(number));
}

void OnnxConstants::concat(const OnnxNode& node) {
  node.require_integer("axis", 0, 0);
  Integers all;
  for (int i = 0; i < node.input_count(); ++i) {
    const Integers part = file_.integers(input(node, i));
    all.insert(all.end(), part.begin(), part.end());
    if (std::ssize(all) > most_elements) node.refuse("its size is not possible");
  }
  give(node, {std::ssize(all)}, all);
}

// One element, as often as the shape says.
void OnnxConstants::expand(const OnnxNode& node) {
  const onnx::TensorProto& one = input(node, 0);
  const Integers dims = file_.integers(input(node, 1));
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) {
    if (dim < 1 || count > most_elements / dim) node.refuse("its size is not possible");
    count *= dim;
  }
  if (std::ranges::any_of(one.dims(), [](std::int64_t dim) { return dim != 1; })) {
    // A list of one number as the shape of a list: the same list.
    if (dims == Integers{1}) return identity(node);
    node.refuse("only an array of one element is possible");
  }
  const auto size = static_cast<std::size_t>(count);
  if (one.data_type() == onnx::TensorProto::INT64) {
    give(node, dims, Integers(size, file_.integers(one).front()));
  } else {
    give(node, dims, std::vector<float>(size, file_.floats(one).front()));
  }
}

// Of shapes and axes, which become lists.
void OnnxConstants::reshape(const OnnxNode& node) {
  const Integers values = file_.integers(input(node, 0));
  give(node, {std::ssize(values)}, values);
}

}  // namespace lockstep
