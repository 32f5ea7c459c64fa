#include "files/checkpoint/custom_checkpoint.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/text/json_text.hpp"
#include "base/text/printable.hpp"
#include "files/content_hash.hpp"
#include "files/tensor_file.hpp"
#include "run/run_file.hpp"

namespace lockstep {
namespace {

constexpr FileKind custom_checkpoint_kind{"checkpoint of a custom training loop",
                                          "Use an older checkpoint, if there is one."};
constexpr std::int32_t custom_format = 1;
constexpr const char* format_attribute = "custom_checkpoint_format";
constexpr const char* arrays_group = "arrays";
constexpr const char* state_dataset = "state";
constexpr const char* hash_attribute = "hash";
constexpr int nesting_limit = 32;

using Json = nlohmann::json;

std::string hash_of(const std::vector<ParameterStore::Entry>& arrays, const std::string& state) {
  ContentHash hash;
  hash.add_tensors(arrays_group, arrays);
  return hash.digest({{"format", custom_format}, {state_dataset, state}});
}

// Fills in everything but the arrays. False if `state` is not such a state.
bool read_state(const Json& state, CustomCheckpoint& checkpoint) {
  const auto steps = count_in(state, "steps_completed");
  const auto seconds = number_in(state, "seconds");
  if (!steps || !seconds) return false;
  checkpoint.steps_completed = *steps;
  checkpoint.seconds = *seconds;
  checkpoint.metadata = state.value("metadata", Json());
  checkpoint.options = state.value("options", Json());
  return checkpoint.metadata.is_object() && checkpoint.options.is_object();
}

// Why an array cannot be stored; empty if it can. HDF5 takes some names for paths.
std::string fault_of(const std::string& name, const std::vector<float>& values) {
  if (values.empty()) return "it has no values";
  const bool is_path = name == "." || name.find('/') != std::string::npos || name.find('\0') != std::string::npos;
  if (is_path) return "its name is '.', or contains '/' or a zero byte";
  return name.empty() || name.size() > tensor_file_limits::name_bytes
             ? fmt::format("its name has {} bytes, not 1 to {}", name.size(), tensor_file_limits::name_bytes)
             : "";
}

std::vector<ParameterStore::Entry> entries_of(const NamedArrays& arrays) {
  std::vector<ParameterStore::Entry> entries;
  for (const auto& [name, values] : arrays) {
    const std::string fault = fault_of(name, values);
    require(fault.empty(), Failure::usage,
            "the array '{}' cannot be stored in a checkpoint: {}. Correct the program's call.", printable(name), fault);
    entries.push_back({name, {std::ssize(values)}, values});
  }
  return entries;
}

}  // namespace

std::vector<std::byte> checkpoint_image(const CustomCheckpoint& checkpoint) {
  const Json fields = {{"steps_completed", checkpoint.steps_completed},
                       {"seconds", checkpoint.seconds},
                       {"metadata", checkpoint.metadata},
                       {"options", checkpoint.options}};
  const std::string state = json_text(fields);
  const Json read = try_parse_json(state, nesting_limit);
  CustomCheckpoint as_read;
  require(read == fields && read_state(read, as_read), Failure::usage,
          "the metadata of a checkpoint cannot be stored: it is not an object, contains a number that is not finite or "
          "text that is not UTF-8, or is nested deeper than {} levels. Correct the program's call.",
          nesting_limit - 1);
  const std::vector<ParameterStore::Entry> arrays = entries_of(checkpoint.arrays);
  TensorFileWriter file;
  file.write_number(format_attribute, custom_format);
  if (!arrays.empty()) file.write_tensors(arrays_group, arrays);
  file.write_long_text(state_dataset, state);
  file.write_text(hash_attribute, hash_of(arrays, state));
  return file.image();
}

bool is_custom_checkpoint(const std::filesystem::path& path, std::string& image) {
  return has_hash_line(image) &&
         TensorFileReader(custom_checkpoint_kind, path.string(), image).has_attribute(format_attribute);
}

CustomCheckpoint parse_custom_checkpoint(const std::filesystem::path& path, std::string& image) {
  TensorFileReader file(custom_checkpoint_kind, path.string(), image);
  file.require_format(format_attribute, custom_format, custom_format);
  const std::vector<std::string> groups = file.groups();
  std::vector<ParameterStore::Entry> arrays;
  if (std::ranges::find(groups, arrays_group) != groups.end()) arrays = file.tensors(arrays_group);
  const std::string state = file.long_text(state_dataset);
  if (file.texts(hash_attribute)[0] != hash_of(arrays, state)) file.damaged("its hash does not match its content");
  CustomCheckpoint checkpoint;
  if (!read_state(try_parse_json(state, nesting_limit), checkpoint)) file.damaged("'state' has invalid fields");
  for (ParameterStore::Entry& array : arrays) checkpoint.arrays.emplace(array.name, std::move(array.values));
  return checkpoint;
}

}  // namespace lockstep
