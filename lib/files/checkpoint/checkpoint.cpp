#include "files/checkpoint/checkpoint.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/io/file.hpp"
#include "files/content_hash.hpp"

namespace lockstep {

namespace {

constexpr FileKind kind{"checkpoint", "Use an older checkpoint, if there is one."};
constexpr FileKind either_kind{"model file", "Copy it again, or train it again."};
constexpr std::int32_t oldest_format = 2;
constexpr const char* format_attribute = "checkpoint_format";

// Names that a group of the optimizer's state must not have. They are used in the root and among the hash's fields.
constexpr std::array<std::string_view, 7> other_names{"weights", "mean_weights", "state", "model",
                                                      "format",  "note",         "tags"};

bool is_taken(const std::string& name) { return std::ranges::find(other_names, name) != other_names.end(); }

std::string hash_of(const Checkpoint& checkpoint, std::int32_t format, const std::string& state) {
  ContentHash hash;
  for (const auto& [name, entries] : checkpoint.optimizer) hash.add_tensors(name.c_str(), entries);
  if (!checkpoint.mean.empty()) hash.add_tensors("mean_weights", checkpoint.mean);
  nlohmann::json fields = {{"format", format}, {"model", model_hash(checkpoint.model)}, {"state", state}};
  if (!checkpoint.note.empty()) fields["note"] = checkpoint.note;
  if (!checkpoint.tags.empty()) fields["tags"] = checkpoint.tags;
  return hash.digest(std::move(fields));
}

TrainingState parse_state(const TensorFileReader& file, const std::string& text) {
  try {
    return parse_training_state(text);
  } catch (const std::runtime_error& fault) {
    file.damaged(fault.what());
  }
}

}  // namespace

std::int32_t format_of(const Checkpoint& checkpoint) {
  if (checkpoint.state.early_stop) return checkpoint_format;
  return checkpoint.model.shorter_side ? 3 : oldest_format;
}

std::vector<std::byte> checkpoint_image(const Checkpoint& checkpoint) {
  const std::string state = training_state_text(checkpoint.state);
  TensorFileWriter file;
  file.write_number(format_attribute, format_of(checkpoint));
  write_model_fields(file, checkpoint.model);
  file.write_tensors("weights", checkpoint.model.entries);
  if (!checkpoint.mean.empty()) file.write_tensors("mean_weights", checkpoint.mean);
  for (const auto& [name, entries] : checkpoint.optimizer) {
    assert(!is_taken(name));
    file.write_tensors(name.c_str(), entries);
  }
  if (!checkpoint.note.empty()) file.write_text("note", checkpoint.note);
  if (!checkpoint.tags.empty()) file.write_texts("tags", checkpoint.tags);
  file.write_long_text("state", state);
  file.write_text("hash", hash_of(checkpoint, format_of(checkpoint), state));
  return file.image();
}

Checkpoint parse_checkpoint(const std::filesystem::path& path, std::string& image) {
  TensorFileReader file(kind, path.string(), image);
  file.require_format(format_attribute, oldest_format, checkpoint_format);
  Checkpoint checkpoint{read_model_fields(file), {}, {}};
  checkpoint.model.entries = file.tensors("weights");
  for (const std::string& name : file.groups()) {
    if (name == "weights") continue;
    if (name == "mean_weights") {
      checkpoint.mean = file.tensors("mean_weights");
      continue;
    }
    if (is_taken(name)) file.damaged(fmt::format("the name of the group '{}' is reserved for other data", name));
    checkpoint.optimizer.emplace(name, file.tensors(name.c_str()));
  }
  if (file.has_attribute("note")) checkpoint.note = file.texts("note")[0];
  if (file.has_attribute("tags")) checkpoint.tags = file.texts("tags");
  const std::string state = file.long_text("state");
  const std::int32_t format = file.numbers<std::int32_t>(format_attribute, 1)[0];
  if (file.texts("hash")[0] != hash_of(checkpoint, format, state)) {
    file.damaged("its hash does not match its content");
  }
  checkpoint.state = parse_state(file, state);
  return checkpoint;
}

Checkpoint read_checkpoint(const std::filesystem::path& path) {
  std::string image = read_file(path, tensor_file_limits::file_bytes);
  return parse_checkpoint(path, image);
}

bool is_checkpoint(const std::filesystem::path& path, std::string& image) {
  return TensorFileReader(either_kind, path.string(), image).has_attribute(format_attribute);
}

ModelFile read_weights(const std::filesystem::path& path) {
  std::string image = read_file(path, tensor_file_limits::file_bytes);
  return is_checkpoint(path, image) ? model_to_use(parse_checkpoint(path, image)) : parse_model_file(path, image);
}

ModelFile model_to_use(Checkpoint checkpoint) {
  if (!checkpoint.mean.empty()) checkpoint.model.entries = std::move(checkpoint.mean);
  return std::move(checkpoint.model);
}

}  // namespace lockstep
