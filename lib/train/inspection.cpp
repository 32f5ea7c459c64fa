#include "train/inspection.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "base/io/file.hpp"
#include "base/io/mapped_file.hpp"
#include "base/text/counted.hpp"
#include "base/text/json_text.hpp"
#include "base/text/printable.hpp"
#include "dataset/shards/manifest.hpp"
#include "dataset/shards/shard.hpp"
#include "dataset/shards/shard_format.hpp"
#include "dataset/split.hpp"
#include "files/checkpoint/checkpoint.hpp"
#include "files/checkpoint/custom_checkpoint.hpp"
#include "files/import/hdf5_tensors.hpp"
#include "files/import/pretrained_weights.hpp"
#include "run/checkpoint_files.hpp"
#include "run/run_file.hpp"
#include "train/run_inspection.hpp"

namespace lockstep {

namespace {

// A ModelProto begins with field 1, the format version, and field 2, the producer.
bool begins_as_onnx(std::string_view start) { return start.size() > 2 && start[0] == '\x08' && start[2] == '\x12'; }

// Does not use HDF5, which must not read files of unknown origin.
bool is_shard_of_ours(const std::filesystem::path& path) {
  const MappedFile mapped(open_to_read(path));
  const WeightBytes file(path.string(), {reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size()});
  const bool has_samples = has_root_member(file, shard_format::images) || has_root_member(file, shard_format::samples);
  return has_samples && has_root_attribute(file, "format");
}

std::string shape_text(const SampleShape& shape) {
  return fmt::format("{} x {} pixels, {}", shape.height, shape.width, counted(shape.channels, "channel"));
}

std::string pictures_text(const Manifest& manifest) {
  const std::string shape = shape_text(manifest.shape);
  switch (manifest.store) {
    case SampleStore::images:
      break;
    case SampleStore::pictures:
      return "various sizes, stored as pixels; network input: " + shape;
    case SampleStore::jpeg:
      return "various sizes, stored as JPEG files; network input: " + shape;
  }
  return shape;
}

// On one line.
std::string shown(std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + printable_name(name);
  return text;
}

std::string describe_manifest(const std::filesystem::path& folder) {
  const Manifest manifest = read_manifest(folder);
  std::string text = fmt::format(
      "data set '{}' (format {})\n  source     {}\n  samples    {} in {}\n  pictures   {} ({})\n  classes    "
      "{}: "
      "{}\n  mean       {:.4f}\n  deviation  {:.4f}\n  hash       {}\n",
      printable(manifest.name), manifest.format(), printable(manifest.source), manifest.samples(),
      counted(manifest.shards.size(), "shard"), pictures_text(manifest),
      manifest.kind == SampleKind::digit ? "digits" : "pictures", manifest.classes.size(), shown(manifest.classes),
      fmt::join(manifest.mean, ", "), fmt::join(manifest.deviation, ", "), manifest.root_hash);
  for (const ShardEntry& shard : manifest.shards) {
    text += fmt::format("\n  {}  {} samples, {} bytes", printable(shard.file), shard.samples, shard.bytes);
  }
  return text;
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

bool is_listed(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(folder_of(path) / manifest_file, error)) return false;
  const Manifest manifest = read_manifest(folder_of(path));
  return std::ranges::find(manifest.shards, path.filename().string(), &ShardEntry::file) != manifest.shards.end();
}

// The manifest in the shard's folder explains its numbers.
std::string describe_shard(const std::filesystem::path& path) {
  const std::filesystem::path folder = folder_of(path);
  const Manifest manifest = read_manifest(folder);
  const auto entry = std::ranges::find(manifest.shards, path.filename().string(), &ShardEntry::file);
  require(entry != manifest.shards.end(), Failure::usage,
          "'{}' is a shard, but its manifest '{}' does not list it. Check whether it is left over from another run of "
          "make_shards.",
          path.string(), (folder / manifest_file).string());
  const ShardReader shard(folder, manifest, *entry);
  std::vector<std::int64_t> counts(manifest.classes.size());
  for (std::int64_t sample = 0; sample < shard.samples(); ++sample)
    ++counts[static_cast<std::size_t>(shard.label(sample))];
  std::string text =
      fmt::format("shard of data set '{}'\n  samples   {}\n  pictures  {}\n  bytes     {}\n  hash      {}\n",
                  printable(manifest.name), shard.samples(), pictures_text(manifest), entry->bytes, entry->hash);
  for (std::size_t label = 0; label < counts.size(); ++label) {
    text += fmt::format("\n  {:>5}  {:<20}  {} samples", label, printable_name(manifest.classes[label]), counts[label]);
  }
  return text;
}

// A shard that no manifest lists: described by its own attributes, if its hash line is correct.
std::string describe_lone_shard(const std::filesystem::path& path) {
  std::string image = read_file(path, tensor_file_limits::file_bytes);
  require(has_hash_line(image), Failure::usage,
          "'{}' is a shard of an earlier version, which cannot be read without its manifest.json. Inspect it in the "
          "folder of that manifest.json.",
          path.string());
  TensorFileReader file({"shard", "Copy it again."}, path.string(), image);
  Manifest own;
  own.name = file.texts("name")[0];
  own.classes = file.texts("classes");
  const std::vector<std::int64_t> shape = file.numbers<std::int64_t>("sample_shape", 3);
  own.shape = {shape[0], shape[1], shape[2]};
  const auto* const store = find_choice(sample_stores, file.texts("store")[0]);
  if (store == nullptr || own.shape.channels < 1 || own.shape.channels > 4)
    file.damaged("it holds no samples of a known kind");
  own.store = store->value;
  const auto channels = static_cast<std::size_t>(own.shape.channels);
  const std::vector<std::int32_t> labels = file.whole_numbers(shard_format::labels);
  std::vector<std::int64_t> counts(own.classes.size());
  for (const std::int32_t label : labels) {
    if (label < 0 || static_cast<std::size_t>(label) >= counts.size())
      file.damaged("a label does not belong to any class");
    ++counts[static_cast<std::size_t>(label)];
  }
  std::string text = fmt::format(
      "shard of data set '{}', split '{}' (from the shard itself; its folder has no manifest.json)\n  samples    {}\n  "
      "pictures   {} ({}s)\n  axes       {}\n  mean       {:.4f} (of this shard only)\n  deviation  {:.4f}\n",
      printable(own.name), printable(file.texts("split")[0]), labels.size(), pictures_text(own),
      printable(file.texts("kind")[0]), printable(file.texts("axes")[0]),
      fmt::join(file.numbers<float>("shard_mean", channels), ", "),
      fmt::join(file.numbers<float>("shard_deviation", channels), ", "));
  for (std::size_t label = 0; label < counts.size(); ++label) {
    text += fmt::format("\n  {:>5}  {:<20}  {} samples", label, printable_name(own.classes[label]), counts[label]);
  }
  return text;
}

std::string describe_tensors(const std::vector<ParameterStore::Entry>& entries) {
  std::size_t values = 0;
  for (const ParameterStore::Entry& entry : entries) values += entry.values.size();
  const bool has_statistics = std::ranges::any_of(
      entries, [](const ParameterStore::Entry& entry) { return entry.name.ends_with("running_mean"); });
  std::string text = fmt::format("\n  values     {} in {} tensors{}\n  weights    {}\n", values, entries.size(),
                                 has_statistics ? ", running statistics included" : "", weights_hash(entries));
  for (const ParameterStore::Entry& entry : entries) {
    text += fmt::format("\n  {:<40}  [{}]", printable_name(entry.name), fmt::join(entry.dims, ", "));
  }
  return text;
}

std::string resizing_text(const ModelFile& model) {
  const auto side = model.shorter_side.value_or(0);
  return side == 0 ? "" : fmt::format(", center crop after the shorter side is resized to {}", side);
}

// The lines after the first one.
std::string describe_model(const ModelFile& model) {
  return fmt::format("\n  takes      {}{}\n  classes    {}: {}\n  mean       {:.4f}\n  deviation  {:.4f}",
                     shape_text(model.shape), resizing_text(model), model.classes.size(), shown(model.classes),
                     fmt::join(model.mean, ", "), fmt::join(model.deviation, ", ")) +
         describe_tensors(model.entries);
}

std::string notes_of(const Checkpoint& checkpoint) {
  std::string text = checkpoint.note.empty() ? "" : fmt::format("\n  note       {}", printable(checkpoint.note));
  for (const std::string& tag : checkpoint.tags) text += fmt::format("\n  tag        {}", printable(tag));
  return text;
}

std::string describe_checkpoint(const Checkpoint& checkpoint) {
  const TrainingState& state = checkpoint.state;
  return fmt::format(
      "checkpoint of '{}' (format {})\n  step       {} ({} whole epochs, {} samples)\n  made by    {}\n"
      "  ranks      {}\n  recipe     {}{}{}",
      printable(checkpoint.model.model), format_of(checkpoint), state.progress.step, state.progress.epoch,
      state.progress.samples, printable(state.origin.device), state.origin.ranks, printable(json_text(state.recipe)),
      checkpoint.ema.empty() ? "" : fmt::format("\n  mean       weights {} (--ema)", weights_hash(checkpoint.ema)),
      notes_of(checkpoint));
}

std::string describe_custom_checkpoint(const CustomCheckpoint& checkpoint) {
  std::string text = fmt::format(
      "checkpoint of a custom training loop\n  step       {}\n  seconds    {:.1f}\n  metadata   {}\n  options    {}",
      checkpoint.steps_completed, checkpoint.seconds, printable(json_text(checkpoint.metadata)),
      printable(json_text(checkpoint.options)));
  for (const auto& [name, values] : checkpoint.arrays) {
    text += fmt::format("\n  {:<40}  [{}]", printable_name(name), values.size());
  }
  return text;
}

std::string describe_weights(const std::filesystem::path& path) {
  std::string image = read_file(path, tensor_file_limits::file_bytes);
  if (is_custom_checkpoint(path, image)) return describe_custom_checkpoint(parse_custom_checkpoint(path, image));
  const WeightsKind kind = kind_of_weights(path, image);
  switch (kind) {
    case WeightsKind::checkpoint: {
      const Checkpoint checkpoint = parse_checkpoint(path, image);
      return describe_checkpoint(checkpoint) + describe_model(checkpoint.model);
    }
    case WeightsKind::model_file: {
      const ModelFile model = parse_model_file(path, image);
      return fmt::format("model '{}' (format {})", printable(model.model), format_of(model)) +
             (model.step ? fmt::format("\n  step       {}", *model.step) : "") + describe_model(model);
    }
    case WeightsKind::safetensors:
    case WeightsKind::state_dict:
      break;
  }
  const ModelFile model = parse_pretrained_weights(path, kind, image);
  if (!model.model.empty()) {
    return fmt::format("model '{}', written by export_model (safetensors)", printable(model.model)) +
           describe_model(model);
  }
  return fmt::format("weights written by another program ({})",
                     kind == WeightsKind::safetensors ? "safetensors" : "HDF5") +
         describe_tensors(model.entries);
}

bool is_split(const std::filesystem::path& folder) {
  std::error_code error;
  return std::filesystem::exists(folder / manifest_file, error);
}

bool holds_splits(const std::filesystem::path& folder) {
  return !is_split(folder) && is_split(split_folder(folder, Split::train));
}

void refuse_checkpoints(const std::filesystem::path& folder) {
  if (!is_absent(folder / run_files::summary)) return;
  const std::optional<NewestCheckpoint> newest = newest_checkpoint(folder);
  require(
      !newest, Failure::usage,
      "'{}' is a folder of checkpoints, but inspect describes one at a time. Inspect the newest, '{}', or the output "
      "folder of the training.",
      folder.string(), newest ? newest->path.string() : "");
}

std::string describe_folder(const std::filesystem::path& folder) {
  refuse_checkpoints(folder);
  if (holds_run(folder)) return describe_run(folder);
  if (!holds_splits(folder)) return describe_manifest(folder);
  std::string text;
  for (const Choice<Split>& split : splits) {
    const std::filesystem::path part = split_folder(folder, split.value);
    if (is_split(part))
      text += fmt::format("{}{}: {}", text.empty() ? "" : "\n\n", split.name, describe_manifest(part));
  }
  return text;
}

}  // namespace

std::filesystem::path drawn_split(const std::filesystem::path& folder) {
  return holds_splits(folder) ? split_folder(folder, Split::train) : folder;
}

std::string describe_file(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return describe_folder(path);
  const std::string start = read_start(path, 128);
  if (path.filename() == manifest_file) return describe_manifest(folder_of(path));
  require(
      !begins_as_onnx(start), Failure::usage,
      "'{}' is an ONNX file. Use inspect --model to list its layers, or inspect the model file it was exported from.",
      path.string());
  refuse_unsupported_formats(path, start);
  const bool is_hdf5 = looks_like_hdf5(std::as_bytes(std::span(start)));
  constexpr std::size_t header_at = 8;  // position of the safetensors header, after its length
  require(is_hdf5 || (start.size() > header_at && start[header_at] == '{'), Failure::usage,
          "'{}' is not a shard, a manifest, a model file, a checkpoint, or weights of another program (safetensors, "
          "HDF5). Choose a file that make_shards or train_cifar wrote.",
          path.string());
  const bool is_shard = is_hdf5 && (is_listed(path) || is_shard_of_ours(path));
  if (!is_shard) return describe_weights(path);
  return is_absent(folder_of(path) / manifest_file) ? describe_lone_shard(path) : describe_shard(path);
}

}  // namespace lockstep
