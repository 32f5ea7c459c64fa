#include "files/checkpoint/checkpoint.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/io/file.hpp"
#include "base/io/hdf5_memory.hpp"
#include "files/checkpoint/guarded_stream.hpp"
#include "files/content_hash.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {

namespace {

constexpr FileKind checkpoint_kind{"checkpoint", "Use an older checkpoint, if there is one."};
constexpr FileKind either_kind{"model file", "Copy it again, or train it again."};
constexpr std::int32_t oldest_format = 2;
constexpr const char* format_attribute = "checkpoint_format";
constexpr const char* ema_in_file = "mean_weights";

// Names that a group of the optimizer's state must not have. They are used in the root and among the hash's fields.
constexpr std::array<std::string_view, 7> other_names{"weights", "mean_weights", "state", "model",
                                                      "format",  "note",         "tags"};

bool is_taken(const std::string& name) { return std::ranges::find(other_names, name) != other_names.end(); }

// `hash` has the tensors of the optimizer and the EMA.
std::string hash_of(const Checkpoint& checkpoint, std::int32_t format, const std::string& state, ContentHash hash,
                    std::string model) {
  nlohmann::json fields = {{"format", format}, {"model", std::move(model)}, {"state", state}};
  if (!checkpoint.note.empty()) fields["note"] = checkpoint.note;
  if (!checkpoint.tags.empty()) fields["tags"] = checkpoint.tags;
  return hash.digest(std::move(fields));
}

std::string hash_of(const Checkpoint& checkpoint, std::int32_t format, const std::string& state) {
  ContentHash hash;
  for (const auto& [name, entries] : checkpoint.optimizer) hash.add_tensors(name, entries);
  if (!checkpoint.ema.empty()) hash.add_tensors(ema_in_file, checkpoint.ema);
  return hash_of(checkpoint, format, state, std::move(hash), model_hash(checkpoint.model));
}

void write_head(TensorFileWriter& file, const Checkpoint& checkpoint) {
  file.write_number(format_attribute, format_of(checkpoint));
  write_model_fields(file, checkpoint.model);
}

void write_tail(TensorFileWriter& file, const Checkpoint& checkpoint, const std::string& state,
                const std::string& hash) {
  if (!checkpoint.note.empty()) file.write_text("note", checkpoint.note);
  if (!checkpoint.tags.empty()) file.write_texts("tags", checkpoint.tags);
  file.write_long_text("state", state);
  file.write_text("hash", hash);
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
  if (!checkpoint.model.network.empty()) return checkpoint_format;
  if (checkpoint.state.early_stop) return checkpoint_format - 1;
  return checkpoint.model.shorter_side ? 3 : oldest_format;
}

std::vector<std::byte> checkpoint_image(const Checkpoint& checkpoint) {
  const std::string state = training_state_text(checkpoint.state);
  TensorFileWriter file;
  write_head(file, checkpoint);
  file.write_tensors(weights_group, checkpoint.model.entries);
  if (!checkpoint.ema.empty()) file.write_tensors(ema_in_file, checkpoint.ema);
  for (const auto& [name, entries] : checkpoint.optimizer) {
    assert(!is_taken(name));
    file.write_tensors(name.c_str(), entries);
  }
  write_tail(file, checkpoint, state, hash_of(checkpoint, format_of(checkpoint), state));
  return file.image();
}

namespace {

// More than a checkpoint takes: HDF5 adds at most a page to each tensor.
std::int64_t largest_bytes(const Checkpoint& checkpoint, const std::string& state, const WeightSync& sync) {
  constexpr std::int64_t page_bytes = 4096;
  constexpr std::int64_t others_bytes = 1 << 20;  // note, tags, network, HDF5's own structures
  return sync.state_bytes() + sync.tensor_count() * page_bytes + std::ssize(state) +
         static_cast<std::int64_t>(hdf5_texts_bytes(checkpoint.model.classes)) + others_bytes;
}

// Writes a checkpoint from tensors that come one by one, in the order of WeightSync::groups().
class CheckpointStream {
 public:
  CheckpointStream(UnpublishedFile& file, const Checkpoint& checkpoint, const WeightSync& sync)
      : checkpoint_(checkpoint),
        state_(training_state_text(checkpoint.state)),
        file_(file, largest_bytes(checkpoint, state_, sync)) {
    write_head(file_, checkpoint);
  }

  void begin(const std::string& group) {
    is_model_ = group == weights_group;
    field_ = is_model_ ? model_hash_field : group == ema_group ? ema_in_file : group;
    (is_model_ ? model_ : others_).begin_tensors(field_);
    file_.begin_tensors(is_model_ ? weights_group : field_.c_str());
  }

  void take(const ParameterStore::Entry& tensor) {
    (is_model_ ? model_ : others_).add_tensor(field_, tensor);
    file_.write_tensor(tensor);
  }

  void finish() {
    write_tail(file_, checkpoint_, state_,
               hash_of(checkpoint_, format_of(checkpoint_), state_, std::move(others_),
                       model_hash(checkpoint_.model, std::move(model_))));
    file_.finish();
  }

 private:
  const Checkpoint& checkpoint_;
  std::string state_;
  TensorFileWriter file_;
  ContentHash model_;   // of the weights
  ContentHash others_;  // of the optimizer's groups and the EMA
  bool is_model_ = false;
  std::string field_;  // of the current group in its hash
};

}  // namespace

void stream_checkpoint(UnpublishedFile* file, const Checkpoint& checkpoint, const WeightSync& sync) {
  GuardedStream<CheckpointStream> stream(file, checkpoint, sync);
  for (const std::string& group : sync.groups()) {
    stream.write([&](CheckpointStream& to) { to.begin(group); });
    sync.visit(group, [&](const ParameterStore::Entry& tensor) {
      rank_status::enter(Phase::saving);  // after a gather; each tensor is progress
      stream.write([&](CheckpointStream& to) { to.take(tensor); });
    });
  }
  stream.write([](CheckpointStream& to) { to.finish(); });
  stream.require_written();
}

Checkpoint parse_checkpoint(const std::filesystem::path& path, std::string& image) {
  TensorFileReader file(checkpoint_kind, path.string(), image);
  file.require_format(format_attribute, oldest_format, checkpoint_format);
  Checkpoint checkpoint{read_model_fields(file), {}, {}};
  checkpoint.model.entries = file.tensors("weights");
  for (const std::string& name : file.groups()) {
    if (name == "weights") continue;
    if (name == ema_in_file) {
      checkpoint.ema = file.tensors(ema_in_file);
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
  if (!checkpoint.ema.empty()) checkpoint.model.entries = std::move(checkpoint.ema);
  return std::move(checkpoint.model);
}

}  // namespace lockstep
