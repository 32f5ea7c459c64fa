#include "export/onnx_model.hpp"

#include <fmt/ranges.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text/json_text.hpp"
#include "export/onnx_graph.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t format_version = 7;  // of ONNX 1.8, which brought operator set 13

// The first dimension is dynamic, `batch`.
void set_type(onnx::ValueInfoProto& value, const char* name, std::initializer_list<std::int64_t> dims) {
  value.set_name(name);
  onnx::TypeProto::Tensor& tensor = *value.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(onnx::TensorProto::FLOAT);
  tensor.mutable_shape()->add_dim()->set_dim_param("batch");
  for (const std::int64_t dim : dims) tensor.mutable_shape()->add_dim()->set_dim_value(dim);
}

void add_note(onnx::ModelProto& file, const char* key, const nlohmann::json& value) {
  onnx::StringStringEntryProto& note = *file.add_metadata_props();
  note.set_key(key);
  note.set_value(value.is_string() ? value.get<std::string>() : json_text(value));
}

}  // namespace

std::string onnx_model(const NetworkGraph& network, const ModelFile& model) {
  const SampleShape& shape = model.shape;
  onnx::ModelProto file;
  file.set_ir_version(format_version);
  file.set_producer_name("Lockstep");
  file.set_doc_string("images: pixel / 255; the graph normalises them itself. logits: one for each class.");
  file.add_opset_import()->set_version(onnx_operator_set);
  add_note(file, "model", model.model);
  add_note(file, "classes", model.classes);
  add_note(file, "mean", model.mean);
  add_note(file, "deviation", model.deviation);
  if (model.sample_bits) add_note(file, "sample_bits", *model.sample_bits);
  if (model.shorter_side) add_note(file, "shorter_side", *model.shorter_side);

  onnx::GraphProto& graph = *file.mutable_graph();
  graph.set_name("network");
  set_type(*graph.add_input(), "images", {shape.channels, shape.height, shape.width});
  set_type(*graph.add_output(), "logits", {static_cast<std::int64_t>(model.classes.size())});
  OnnxGraph writer(graph, model.entries);
  writer.set_output(writer.add(network, writer.normalize("images", model.mean, model.deviation)), "logits");

  const std::size_t bytes = file.ByteSizeLong();
  require(
      bytes <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()), Failure::usage,
      "the model would have {} bytes as ONNX, but a single ONNX file is limited to 2 GiB. Export it as --safetensors.",
      bytes);
  return file.SerializeAsString();
}

}  // namespace lockstep
