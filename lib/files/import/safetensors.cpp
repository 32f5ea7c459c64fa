#include "files/import/safetensors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "base/text/json_text.hpp"
#include "files/tensor_file.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t length_bytes = 8;
constexpr std::uint64_t longest_header = 1 << 24;
constexpr const char* metadata_key = "__metadata__";

struct Dtype {
  std::string_view name;
  StoredFloat form;
};
constexpr Dtype dtypes[] = {
    {"F32", StoredFloat::f32}, {"F16", StoredFloat::f16}, {"BF16", StoredFloat::bf16}, {"F64", StoredFloat::f64}};

// A range of bytes, relative to the first value.
struct Extent {
  std::uint64_t begin;
  std::uint64_t end;
};

// Parses with a limit on the depth. Refuses duplicate names, of which the JSON parser would keep only the last.
Json parse_header(std::string_view text) {
  constexpr int deepest = 3;
  std::set<std::string> names[deepest];
  const auto check = [&names](int depth, Json::parse_event_t event, Json& value) {
    if (depth > deepest) throw std::runtime_error("its header is nested too deeply");
    if (event == Json::parse_event_t::object_start && depth < deepest) names[depth].clear();
    if (event == Json::parse_event_t::key && !names[depth - 1].insert(value.get<std::string>()).second) {
      throw std::runtime_error(fmt::format("its header names '{}' twice", value.get<std::string>()));
    }
    return true;
  };
  return Json::parse(text, check);
}

Json header_of(const WeightBytes& file, std::string_view text) {
  try {
    return parse_header(text);
  } catch (const Json::exception&) {
    file.refuse("its header is not valid JSON");
  } catch (const std::runtime_error& fault) {
    file.refuse(fault.what());
  }
}

// Integers of 0 or more.
std::vector<std::uint64_t> numbers_of(const WeightBytes& file, const std::string& name, const Json& tensor,
                                      const char* field) {
  const auto found = tensor.find(field);
  const bool are_numbers = found != tensor.end() && found->is_array() &&
                           std::ranges::all_of(*found, [](const Json& number) { return number.is_number_unsigned(); });
  if (!are_numbers) file.refuse(fmt::format("'{}' has no list '{}' of whole numbers", name, field));
  return found->get<std::vector<std::uint64_t>>();
}

class Reader {
 public:
  explicit Reader(const WeightBytes& file) : file_(file) {
    const std::uint64_t length = file.number(0, length_bytes);
    if (length > longest_header) {
      file.refuse(fmt::format("its header would have {} bytes, more than {}", length, longest_header));
    }
    header_ = header_of(file, file.piece(length_bytes, length));
    if (!header_.is_object()) file.refuse("its header is not a JSON object");
    first_ = length_bytes + length;
  }

  std::map<std::string, std::string> metadata() const {
    const auto found = header_.find(metadata_key);
    const bool are_texts = found != header_.end() && found->is_object() &&
                           std::ranges::all_of(*found, [](const Json& text) { return text.is_string(); });
    return are_texts ? found->get<std::map<std::string, std::string>>() : std::map<std::string, std::string>{};
  }

  std::vector<ParameterStore::Entry> tensors() {
    check_extents();
    std::vector<ParameterStore::Entry> entries;
    for (const auto& [name, tensor] : header_.items()) {
      if (name != metadata_key && !is_counter(name)) entries.push_back(read(name, tensor));
    }
    if (entries.empty()) file_.refuse("it holds no tensors");
    std::ranges::sort(entries, {}, &ParameterStore::Entry::name);
    return entries;
  }

 private:
  Extent extent_of(const std::string& name, const Json& tensor) const {
    if (!tensor.is_object()) file_.refuse(fmt::format("'{}' is not a JSON object", name));
    const std::vector<std::uint64_t> offsets = numbers_of(file_, name, tensor, "data_offsets");
    if (offsets.size() != 2 || offsets[0] > offsets[1]) {
      file_.refuse(fmt::format("'{}' has no valid 'data_offsets'", name));
    }
    return {offsets[0], offsets[1]};
  }

  // Every byte behind the header must belong to exactly one tensor: nothing is hidden, and no tensors overlap. This
  // also detects a truncated file, whose header is complete.
  void check_extents() const {
    std::vector<Extent> extents;
    for (const auto& [name, tensor] : header_.items()) {
      if (name == metadata_key) continue;
      if (name.empty() || name.size() > tensor_file_limits::name_bytes || name.find('\0') != std::string::npos) {
        file_.refuse("a tensor has an invalid name");
      }
      extents.push_back(extent_of(name, tensor));
    }
    std::ranges::sort(extents, [](const Extent& a, const Extent& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
    });
    std::uint64_t end = 0;
    for (const Extent& extent : extents) {
      if (extent.begin != end) file_.refuse("its tensors overlap or leave a gap");
      end = extent.end;
    }
    if (end > file_.size() - first_) {
      file_.refuse(fmt::format("it has {} bytes, but its header describes {} (the copy is incomplete)", file_.size(),
                               first_ + end));
    }
    if (end != file_.size() - first_) {
      file_.refuse(fmt::format("its tensors have {} bytes, but {} follow its header", end, file_.size() - first_));
    }
  }

  ParameterStore::Entry read(const std::string& name, const Json& tensor) const {
    const auto dtype = tensor.find("dtype");
    if (dtype == tensor.end() || !dtype->is_string()) file_.refuse(fmt::format("'{}' has no 'dtype'", name));
    const auto& type_name = dtype->get_ref<const std::string&>();
    const auto* const known = std::ranges::find(dtypes, type_name, &Dtype::name);
    if (known == std::end(dtypes)) {
      file_.refuse(fmt::format("'{}' is of type {}, not F32, F16, BF16 or F64", name, type_name));
    }
    const std::vector<std::uint64_t> shape = numbers_of(file_, name, tensor, "shape");
    const std::uint64_t bytes = file_.count_of(name, shape, size_of(known->form)) * size_of(known->form);
    const Extent extent = extent_of(name, tensor);
    if (bytes != extent.end - extent.begin) {
      file_.refuse(fmt::format("'{}' has {} bytes, but its shape needs {}", name, extent.end - extent.begin, bytes));
    }
    return WeightBytes::tensor(name, shape, file_.piece(first_ + extent.begin, bytes), known->form);
  }

  const WeightBytes& file_;
  Json header_;
  std::uint64_t first_ = 0;  // offset of the first value
};

std::string_view bytes_of(const auto& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

bool looks_like_safetensors(std::string_view bytes) {
  if (bytes.size() <= length_bytes || bytes[length_bytes] != '{') return false;
  return WeightBytes("", bytes).number(0, length_bytes) <= bytes.size() - length_bytes;
}

std::vector<ParameterStore::Entry> read_safetensors(const WeightBytes& file) { return Reader(file).tensors(); }

std::map<std::string, std::string> safetensors_metadata(const WeightBytes& file) { return Reader(file).metadata(); }

std::string safetensors_image(std::span<const ParameterStore::Entry> tensors,
                              const std::map<std::string, std::string>& metadata) {
  static_assert(std::endian::native == std::endian::little);
  Json header = Json::object();
  if (!metadata.empty()) header[metadata_key] = metadata;
  std::uint64_t end = 0;
  for (const ParameterStore::Entry& tensor : tensors) {
    const std::uint64_t begin = end;
    end += tensor.values.size() * sizeof(float);
    header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.dims}, {"data_offsets", {begin, end}}};
  }
  std::string text = json_text(header);
  constexpr std::size_t alignment = 8;
  text.append((alignment - text.size() % alignment) % alignment, ' ');

  const std::array<std::uint64_t, 1> length = {text.size()};
  std::string image;
  image.reserve(length_bytes + text.size() + end);
  image += bytes_of(length);
  image += text;
  for (const ParameterStore::Entry& tensor : tensors) image += bytes_of(tensor.values);
  return image;
}

}  // namespace lockstep
