#include "network/onnx/onnx_file.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/io/mapped_file.hpp"
#include "base/text/number.hpp"
#include "base/text/printable.hpp"

namespace lockstep {
namespace {

static_assert(std::endian::native == std::endian::little, "ONNX stores values in this order");

constexpr std::size_t most_bytes = std::numeric_limits<std::int32_t>::max();  // of a protobuf message
constexpr int most_nodes = 20'000;  // the largest of torchvision's models has 600

}  // namespace

std::string short_text(std::string_view name) {
  constexpr std::size_t most = 120;
  return name.size() <= most ? printable(name) : printable(name.substr(0, most)) + "...";
}

std::string short_text(const std::vector<std::int64_t>& list) {
  constexpr std::size_t most = 8;
  const std::string first = fmt::format("{}", fmt::join(std::span(list).first(std::min(most, list.size())), ", "));
  return list.size() <= most ? "[" + first + "]" : fmt::format("[{}, ...]", first);
}

OnnxFile::OnnxFile(std::filesystem::path path) : path_(std::move(path)) {
  const std::string bytes = read_file(path_, most_bytes);
  if (bytes.empty() || !model_.ParseFromString(bytes)) damaged("it is no ONNX model, or an incomplete copy of one");
  has_merged_norms_ = bytes.find("FuseBatchNormInto") != std::string::npos;  // in metadata that older libraries skip
  if (!model_.has_graph() || model_.graph().node_size() == 0) damaged("it has no network");
  if (graph().node_size() > most_nodes) {
    unusable(fmt::format("it has {} nodes, more than {}", graph().node_size(), most_nodes));
  }
  for (const onnx::OperatorSetIdProto& set : model_.opset_import()) {
    if (set.domain().empty() || set.domain() == "ai.onnx") operator_set_ = set.version();
  }
  if (operator_set_ < oldest_operator_set || operator_set_ > newest_operator_set) {
    unusable(fmt::format("its operator set is {}, not one from {} to {}. Export it with opset_version=18",
                         operator_set_, oldest_operator_set, newest_operator_set));
  }
}

void OnnxFile::damaged(const std::string& what) const {
  throw Error(Failure::bad_data, fmt::format("network '{}' cannot be read: {}. Copy or export it again.",
                                             printable(path_.string()), what));
}

void OnnxFile::unusable(const std::string& what) const {
  throw Error(Failure::usage, fmt::format("network '{}' cannot be used: {}.", printable(path_.string()), what));
}

std::int64_t OnnxFile::count_of(const onnx::TensorProto& tensor) const {
  std::int64_t count = 1;
  for (const std::int64_t dim : tensor.dims()) {
    if (dim < 1 || count > static_cast<std::int64_t>(most_bytes) / dim) {
      damaged(fmt::format("array '{}' has an impossible size", short_text(tensor.name())));
    }
    count *= dim;
  }
  return count;
}

std::string OnnxFile::external_bytes(const onnx::TensorProto& tensor) const {
  std::map<std::string, std::string> entries;
  for (const onnx::StringStringEntryProto& entry : tensor.external_data()) entries[entry.key()] = entry.value();
  const std::filesystem::path location = entries["location"];
  // A name, and no path: nothing outside of the folder is read.
  if (location.empty() || location.has_parent_path() || location == ".." || location == ".") {
    damaged(fmt::format("array '{}' is in '{}', which is not a file beside it", short_text(tensor.name()),
                        short_text(location.string())));
  }
  const auto number = [&](const char* key, std::uint64_t otherwise) {
    const std::string& text = entries[key];
    constexpr NumberRange<std::uint64_t> any{0, std::numeric_limits<std::uint64_t>::max()};
    const std::optional<std::uint64_t> value = text.empty() ? otherwise : parse_number(text, any);
    if (!value) damaged(fmt::format("array '{}' has an invalid {}", short_text(tensor.name()), key));
    return *value;
  };
  const std::filesystem::path file = path_.parent_path() / location;
  std::optional<MappedFile> opened;
  try {
    opened.emplace(RegularFile(file, Links::refused));
  } catch (const std::system_error& error) {
    damaged(fmt::format("array '{}' lies in '{}' beside it: {}", short_text(tensor.name()),
                        short_text(location.string()), error.code().message()));
  }
  const std::uint64_t size = opened->bytes().size();
  const std::uint64_t offset = number("offset", 0);
  const std::uint64_t length = number("length", offset <= size ? size - offset : 0);
  if (offset > size || length > size - offset) {
    damaged(fmt::format("array '{}' ends behind the end of '{}' (an incomplete copy)", short_text(tensor.name()),
                        short_text(file.string())));
  }
  External& external = external_[location];
  if (external.arrays.insert(&tensor).second) external.bytes += length;
  if (external.bytes > size) {
    damaged(fmt::format("arrays share bytes of '{}', array '{}' for one", short_text(file.string()),
                        short_text(tensor.name())));
  }
  const std::span<const std::byte> bytes = opened->bytes().subspan(offset, length);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string_view OnnxFile::bytes_of(const onnx::TensorProto& tensor, std::string& memory) const {
  if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return tensor.raw_data();
  memory = external_bytes(tensor);
  return memory;
}

template <typename Value, typename Listed>
std::vector<Value> OnnxFile::elements(const onnx::TensorProto& tensor, const Listed& listed) const {
  const auto count = static_cast<std::size_t>(count_of(tensor));
  std::string memory;
  const std::string_view bytes = bytes_of(tensor, memory);
  const bool is_listed = bytes.empty() && static_cast<std::size_t>(listed.size()) == count;
  if (!is_listed && bytes.size() != count * sizeof(Value)) {
    damaged(fmt::format("array '{}' has {} bytes for {} elements", short_text(tensor.name()), bytes.size(), count));
  }
  if (is_listed) return {listed.begin(), listed.end()};
  std::vector<Value> values(count);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<float> OnnxFile::floats(const onnx::TensorProto& tensor) const {
  if (tensor.data_type() != onnx::TensorProto::FLOAT) {
    unusable(fmt::format("array '{}' is not of type float. Export the model in fp32", short_text(tensor.name())));
  }
  std::vector<float> values = elements<float>(tensor, tensor.float_data());
  for (const float value : values) {
    if (!std::isfinite(value)) {
      unusable(fmt::format("array '{}' has a value that is not finite", short_text(tensor.name())));
    }
  }
  return values;
}

std::vector<std::int64_t> OnnxFile::integers(const onnx::TensorProto& tensor) const {
  if (tensor.data_type() != onnx::TensorProto::INT64) {
    unusable(fmt::format("array '{}' is not of type int64", short_text(tensor.name())));
  }
  return elements<std::int64_t>(tensor, tensor.int64_data());
}

}  // namespace lockstep
