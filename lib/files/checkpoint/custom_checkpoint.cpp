#include "files/checkpoint/custom_checkpoint.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/text/json_text.hpp"
#include "base/text/printable.hpp"
#include "files/checkpoint/guarded_stream.hpp"
#include "files/content_hash.hpp"
#include "files/tensor_file.hpp"
#include "run/run_file.hpp"
#include "runtime/watch/rank_status.hpp"

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

Json hashed_fields(const std::string& state) { return {{"format", custom_format}, {state_dataset, state}}; }

std::string hash_of(const std::vector<ParameterStore::Entry>& arrays, const std::string& state) {
  ContentHash hash;
  hash.add_tensors(arrays_group, arrays);
  return hash.digest(hashed_fields(state));
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
std::string fault_of(const std::string& name, std::int64_t count) {
  if (count == 0) return "it has no values";
  const bool is_path = name == "." || name.find('/') != std::string::npos || name.find('\0') != std::string::npos;
  if (is_path) return "its name is '.', or contains '/' or a zero byte";
  return name.empty() || name.size() > tensor_file_limits::name_bytes
             ? fmt::format("its name has {} bytes, not 1 to {}", name.size(), tensor_file_limits::name_bytes)
             : "";
}

std::string state_text(const CustomCheckpoint& checkpoint) {
  const Json fields = {{"steps_completed", checkpoint.steps_completed},
                       {"seconds", checkpoint.seconds},
                       {"metadata", checkpoint.metadata},
                       {"options", checkpoint.options}};
  std::string state = json_text(fields);
  const Json read = try_parse_json(state, nesting_limit);
  CustomCheckpoint as_read;
  require(read == fields && read_state(read, as_read), Failure::usage,
          "the metadata of a checkpoint cannot be stored: it is not an object, contains a number that is not finite or "
          "text that is not UTF-8, or is nested deeper than {} levels. Correct the program's call.",
          nesting_limit - 1);
  return state;
}

// Writes everything but the arrays, whose values pass through it in the order of their names.
class CheckpointContent {
 public:
  CheckpointContent(TensorFileWriter& file, std::string state) : file_(file), state_(std::move(state)) {
    hash_.begin_tensors(arrays_group);
    file_.write_number(format_attribute, custom_format);
  }

  void begin_array(const std::string& name, std::int64_t count) {
    const std::string fault = fault_of(name, count);
    require(fault.empty(), Failure::usage,
            "the array '{}' cannot be stored in a checkpoint: {}. Correct the program's call.", printable(name), fault);
    if (!has_arrays_) file_.begin_tensors(arrays_group);
    has_arrays_ = true;
    file_.begin_tensor(name, count);
    hash_.begin_tensor(arrays_group, name, {count});
  }
  void write_values(std::span<const float> values) {
    file_.write_values(values);
    hash_.add_values(values);
  }
  void finish() {
    file_.write_long_text(state_dataset, state_);
    file_.write_text(hash_attribute, hash_.digest(hashed_fields(state_)));
  }

 private:
  TensorFileWriter& file_;
  std::string state_;
  ContentHash hash_;
  bool has_arrays_ = false;
};

// More than a checkpoint takes: HDF5 adds at most a page to each array.
std::int64_t largest_bytes(std::span<const StreamedArray> arrays, const std::string& state) {
  constexpr std::int64_t page_bytes = 4096;
  constexpr std::int64_t others_bytes = 1 << 20;  // HDF5's own structures
  std::int64_t bytes = std::ssize(state) + others_bytes;
  for (const StreamedArray& array : arrays) {
    bytes += array.rows * array.width * static_cast<std::int64_t>(sizeof(float)) + page_bytes;
  }
  return bytes;
}

struct CheckpointOnDisk {
  CheckpointOnDisk(UnpublishedFile& file, const CustomCheckpoint& checkpoint, std::span<const StreamedArray> arrays)
      : CheckpointOnDisk(file, state_text(checkpoint), arrays) {}
  CheckpointOnDisk(UnpublishedFile& file, const std::string& state, std::span<const StreamedArray> arrays)
      : writer(file, largest_bytes(arrays, state)), content(writer, state) {}
  void finish() {
    content.finish();
    writer.finish();
  }

  TensorFileWriter writer;
  CheckpointContent content;
};

}  // namespace

std::vector<std::byte> checkpoint_image(const CustomCheckpoint& checkpoint) {
  TensorFileWriter file;
  CheckpointContent content(file, state_text(checkpoint));
  for (const auto& [name, values] : checkpoint.arrays) {
    content.begin_array(name, std::ssize(values));
    content.write_values(values);
  }
  content.finish();
  return file.image();
}

void stream_custom_checkpoint(UnpublishedFile* file, const CustomCheckpoint& checkpoint,
                              std::span<const StreamedArray> arrays) {
  std::vector<const StreamedArray*> by_name;
  for (const StreamedArray& array : arrays) by_name.push_back(&array);
  std::ranges::sort(by_name, {}, [](const StreamedArray* array) { return std::string_view(array->name); });

  GuardedStream<CheckpointOnDisk> stream(file, checkpoint, arrays);
  for (const StreamedArray* array : by_name) {
    stream.write([&](CheckpointOnDisk& to) { to.content.begin_array(array->name, array->rows * array->width); });
    read_blocks(*array, [&](std::span<const float> values) {
      rank_status::enter(file == nullptr ? Phase::gathering : Phase::saving);  // each block is progress
      stream.write([&](CheckpointOnDisk& to) { to.content.write_values(values); });
    });
  }
  stream.write([](CheckpointOnDisk& to) { to.finish(); });
  stream.require_written();
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
