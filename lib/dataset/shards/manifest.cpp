#include "dataset/shards/manifest.hpp"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string_view>
#include <system_error>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/json_text.hpp"
#include "dataset/shards/hash.hpp"
#include "dataset/split.hpp"
#include "picture/decode.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr std::size_t manifest_limit_bytes = std::size_t{64} << 20;
constexpr int nesting_limit = 8;
constexpr std::int64_t samples_limit = std::int64_t{1} << 40;
constexpr std::int64_t bytes_limit = std::int64_t{1} << 50;
constexpr std::int64_t side_limit = 1 << 14;
constexpr std::int64_t channels_limit = 16;
constexpr std::size_t classes_limit = 100'000;
constexpr std::size_t name_limit_bytes = 255;

// Throws the error for an invalid manifest.
using Refusal = std::function<void(const std::string& what)>;

Refusal damaged(const std::filesystem::path& file) {
  return [file](const std::string& what) {
    throw Error(Failure::bad_data, fmt::format("'{}' is damaged: {}. Run make_shards again.", file.string(), what));
  };
}

Refusal unwritable(const std::filesystem::path& file) {
  return [file](const std::string& what) {
    throw Error(Failure::usage,
                fmt::format("cannot write '{}': {}. Readers would reject it as damaged. Change the source.",
                            file.string(), what));
  };
}

// One JSON object of the manifest with its path, "shards[3].", so that every error names the field.
class Fields {
 public:
  Fields(const Json& object, std::string place, const Refusal& refuse)
      : object_(object), place_(std::move(place)), refuse_(refuse) {
    const std::string name = place_.empty() ? "the manifest" : place_.substr(0, place_.size() - 1);
    if (!object.is_object()) refuse(name + " is not an object");
  }

  std::int64_t number(const char* name, std::int64_t least, std::int64_t most) const {
    const Json& value = at(name);
    require_field(value.is_number_integer() && (!value.is_number_unsigned() || value.get<std::uint64_t>() <= INT64_MAX),
                  name, "an integer");
    const auto number = value.get<std::int64_t>();
    require_field(number >= least && number <= most, name, fmt::format("in the range {} to {}", least, most));
    return number;
  }

  std::string text(const char* name, std::size_t least_bytes, std::size_t max_bytes) const {
    const Json& value = at(name);
    require_field(value.is_string(), name, "a string");
    const auto& text = value.get_ref<const std::string&>();
    require_field(text.size() >= least_bytes && text.size() <= max_bytes, name,
                  fmt::format("{} to {} bytes long", least_bytes, max_bytes));
    return text;
  }

  std::string hash(const char* name, std::size_t digits) const {
    std::string value = text(name, digits, digits);
    require_field(is_hash(value, digits), name, fmt::format("{} hexadecimal digits", digits));
    return value;
  }

  const Json& list(const char* name, std::size_t least, std::size_t most) const {
    const Json& value = at(name);
    require_field(value.is_array() && value.size() >= least && value.size() <= most, name,
                  fmt::format("a list of {} to {} items", least, most));
    return value;
  }

  bool has(const char* name) const { return object_.contains(name); }

  const Json& at(const char* name) const {
    const auto found = object_.find(name);
    if (found == object_.end()) refuse_(fmt::format("'{}{}' is missing", place_, name));
    return *found;
  }

  Fields member(const Json& value, const std::string& place) const { return {value, place_ + place + '.', refuse_}; }

  void require_field(bool condition, std::string_view name, std::string_view expected) const {
    if (!condition) refuse_(fmt::format("'{}{}' is not {}", place_, name, expected));
  }

  static bool is_hash(std::string_view text, std::size_t digits) {
    return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  }

 private:
  const Json& object_;
  std::string place_;
  const Refusal& refuse_;
};

std::vector<float> channel_values(const Fields& fields, const char* name, std::int64_t channels, float least) {
  std::vector<float> values;
  for (const Json& value : fields.list(name, static_cast<std::size_t>(channels), static_cast<std::size_t>(channels))) {
    fields.require_field(value.is_number(), name, "a list of numbers");
    const auto number = value.get<double>();
    fields.require_field(number >= least && number <= 1, name,
                         fmt::format("a list of numbers from {:.4g} to 1", least));
    values.push_back(static_cast<float>(number));
  }
  return values;
}

std::vector<std::string> class_names(const Fields& fields) {
  std::vector<std::string> names;
  for (const Json& value : fields.list("classes", 1, classes_limit)) {
    const bool is_text = value.is_string() && value.get_ref<const std::string&>().size() <= name_limit_bytes;
    fields.require_field(is_text, "classes", fmt::format("a list of strings of at most {} bytes", name_limit_bytes));
    // HDF5 pads strings with zeros: in shards, models and checkpoints such a name would be cut there.
    const bool has_zero = value.get_ref<const std::string&>().find('\0') != std::string::npos;
    fields.require_field(!has_zero, "classes", "a list of strings without zero bytes");
    names.push_back(value.get<std::string>());
  }
  return names;
}

ShardEntry shard_entry(const Fields& fields, std::int64_t block_bytes) {
  ShardEntry entry;
  entry.file = fields.text("file", 1, name_limit_bytes);
  const bool plain =
      entry.file.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos && entry.file.front() != '.';
  fields.require_field(plain, "file", "a plain file name");
  entry.samples = fields.number("samples", 1, samples_limit);
  entry.bytes = fields.number("bytes", 1, bytes_limit);
  entry.hash = fields.hash("hash", 32);
  const auto blocks = static_cast<std::size_t>((entry.bytes + block_bytes - 1) / block_bytes);
  for (const Json& value : fields.list("block_hashes", blocks, blocks)) {
    const bool is_hash = value.is_string() && Fields::is_hash(value.get_ref<const std::string&>(), 16);
    fields.require_field(is_hash, "block_hashes", "a list of hashes of 16 hexadecimal digits");
    entry.block_hashes.push_back(value.get<std::string>());
  }
  return entry;
}

std::vector<ShardEntry> shard_entries(const Fields& fields, std::int64_t block_bytes) {
  std::vector<ShardEntry> entries;
  std::set<std::string> names;
  std::int64_t samples = 0;
  for (const Json& value : fields.list("shards", 1, manifest_limit_bytes)) {
    entries.push_back(shard_entry(fields.member(value, fmt::format("shards[{}]", entries.size())), block_bytes));
    fields.require_field(names.insert(entries.back().file).second, "shards", "a list of different files");
    samples += entries.back().samples;
    fields.require_field(samples <= samples_limit, "shards",
                         fmt::format("a list of at most {} samples in total", samples_limit));
  }
  return entries;
}

SampleKind sample_kind(const Fields& fields) {
  const std::string kind = fields.text("kind", 1, name_limit_bytes);
  fields.require_field(kind == "picture" || kind == "digit", "kind", "'picture' or 'digit'");
  return kind == "picture" ? SampleKind::picture : SampleKind::digit;
}

// Format 1 has only one store and does not name it.
SampleStore sample_store(const Fields& fields) {
  if (fields.number("format", 1, 2) == 1) return SampleStore::images;
  const auto* const named = find_choice(sample_stores, fields.text("store", 1, name_limit_bytes));
  const SampleStore store = named == nullptr ? SampleStore::images : named->value;
  fields.require_field(store != SampleStore::images, "store", "'pictures' or 'jpeg'");
  return store;
}

Json without_root_hash(const Manifest& manifest) {
  Json shards = Json::array();
  for (const ShardEntry& entry : manifest.shards) {
    shards.push_back({{"file", entry.file},
                      {"samples", entry.samples},
                      {"bytes", entry.bytes},
                      {"hash", entry.hash},
                      {"block_hashes", entry.block_hashes}});
  }
  Json content = {
      {"format", manifest.format()},
      {"name", manifest.name},
      {"source", manifest.source},
      {"shape",
       {{"height", manifest.shape.height}, {"width", manifest.shape.width}, {"channels", manifest.shape.channels}}},
      {"kind", manifest.kind == SampleKind::picture ? "picture" : "digit"},
      {"classes", manifest.classes},
      {"mean", manifest.mean},
      {"deviation", manifest.deviation},
      {"block_bytes", manifest.block_bytes},
      {"shards", shards}};
  if (manifest.sample_bits) content["sample_bits"] = *manifest.sample_bits;
  if (manifest.store != SampleStore::images) content["store"] = choice_name(sample_stores, manifest.store);
  return content;
}

std::string root_hash_of(const Json& content) {
  const std::string text = json_text(content);
  return xxh3_128_hex(std::as_bytes(std::span(text)));
}

// Position of byte `bytes` of a text, with line and column counted from 1, as in editors.
std::string describe_place(std::string_view text, std::size_t bytes) {
  const std::string_view before = text.substr(0, bytes);
  const std::size_t line_start = before.rfind('\n') + 1;  // 0 in the first line
  return fmt::format("line {}, column {}", 1 + std::ranges::count(before, '\n'),
                     std::max<std::size_t>(before.size() - line_start, 1));
}

Json parse(const std::string& text, const Refusal& refuse) {
  const auto shallow = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > nesting_limit) refuse("it is nested too deeply");
    return true;
  };
  try {
    return Json::parse(text, shallow);
  } catch (const Json::parse_error& mistake) {
    refuse(fmt::format("it is not valid JSON ({})", describe_place(text, mistake.byte)));
    throw;
  } catch (const Json::out_of_range&) {
    refuse("it contains a number that is too large");
    throw;
  }
}

// The fields that are known before the shards are written.
Manifest description_in(const Fields& fields) {
  Manifest manifest;
  manifest.store = sample_store(fields);
  manifest.name = fields.text("name", 1, name_limit_bytes);
  manifest.source = fields.text("source", 0, 1 << 16);
  const Fields shape = fields.member(fields.at("shape"), "shape");
  manifest.shape = {shape.number("height", 1, side_limit), shape.number("width", 1, side_limit),
                    shape.number("channels", 1, channels_limit)};
  manifest.kind = sample_kind(fields);
  if (fields.has("sample_bits")) {
    manifest.sample_bits = fields.number("sample_bits", least_sample_bits, max_sample_bits);
  }
  manifest.classes = class_names(fields);
  return manifest;
}

std::string too_large() { return fmt::format("it is larger than {} bytes", manifest_limit_bytes); }

Manifest manifest_in(const std::string& text, const Refusal& refuse) {
  if (text.size() > manifest_limit_bytes) refuse(too_large());
  Json content = parse(text, refuse);
  const Fields fields(content, "", refuse);
  Manifest manifest = description_in(fields);
  manifest.mean = channel_values(fields, "mean", manifest.shape.channels, 0);
  manifest.deviation = channel_values(fields, "deviation", manifest.shape.channels, smallest_deviation);
  manifest.block_bytes = fields.number("block_bytes", 1 << 12, 1 << 30);
  manifest.shards = shard_entries(fields, manifest.block_bytes);
  manifest.root_hash = fields.hash("root_hash", 32);
  content.erase("root_hash");
  if (manifest.root_hash != root_hash_of(content)) refuse("it does not match its 'root_hash'");
  return manifest;
}

// `directory` is a split of a path that was mistyped.
void require_folder(const std::filesystem::path& directory) {
  const std::filesystem::path data = directory.parent_path();
  std::error_code error;
  if (data.empty() || std::filesystem::is_directory(data, error)) return;
  throw Error(Failure::usage, fmt::format("'{}' {}. Pass the folder of a data set, which make_shards writes.",
                                          data.string(), is_absent(data) ? "does not exist" : "is not a folder"));
}

// `directory` is DATA/train/train if the user named a split instead of DATA.
void require_no_part(const std::filesystem::path& directory) {
  std::error_code error;
  const std::filesystem::path split = std::filesystem::absolute(directory, error).lexically_normal().parent_path();
  require(is_absent(split / manifest_file), Failure::usage,
          "'{}' is only one split of a data set, and the other splits are needed too. Pass the folder above it: '{}'.",
          split.string(), split.parent_path().string());
}

void require_split_was_made(const std::filesystem::path& directory) {
  const std::filesystem::path data = directory.parent_path();
  const bool is_other_split = directory.filename() == split_name(Split::validation) &&
                              !is_absent(split_folder(data, Split::train) / manifest_file);
  require(!is_other_split, Failure::usage,
          "'{}' has no validation split, because no training samples were set aside for it. Test on another split, or "
          "make the data set again with make_shards --validation N.",
          data.string());
}

std::string manifest_text(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / manifest_file;
  if (is_absent(file)) {
    require_no_part(directory);
    require_folder(directory);
    require_split_was_made(directory);
  }
  require(!is_absent(file), Failure::usage, "'{}' contains no data set: {} is missing. Make one with make_shards.",
          directory.string(), manifest_file);
  return read_file(file, manifest_limit_bytes);
}

}  // namespace

std::int64_t Manifest::samples() const {
  std::int64_t sum = 0;
  for (const ShardEntry& entry : shards) sum += entry.samples;
  return sum;
}

std::int64_t block_bytes_for(std::int64_t structure_bytes, std::int64_t all_bytes) {
  constexpr std::int64_t max_blocks = 1'000'000;  // 24 bytes of the manifest each
  std::int64_t bytes = Manifest().block_bytes;
  while (bytes < structure_bytes || all_bytes / bytes > max_blocks) bytes *= 2;
  return bytes;
}

Manifest read_manifest(const std::filesystem::path& directory) {
  return manifest_in(manifest_text(directory), damaged(directory / manifest_file));
}

void copy_manifest(const std::filesystem::path& from, const std::filesystem::path& to, const std::string& root_hash) {
  const std::string text = manifest_text(from);
  require(manifest_in(text, damaged(from / manifest_file)).root_hash == root_hash, Failure::other,
          "'{}' was replaced while it was read. Wait until the new data set is complete, and run again.",
          (from / manifest_file).string());
  if (is_absent(to / manifest_file) || read_file(to / manifest_file, manifest_limit_bytes) != text) {
    write_file_atomically(to / manifest_file, text);
  }
}

Manifest as_it_will_be_read(const std::filesystem::path& directory, const Manifest& draft) {
  const Refusal refuse = unwritable(directory / manifest_file);
  const Json draft_content = without_root_hash(draft);
  if (json_lines(draft_content).size() > manifest_limit_bytes) refuse(too_large());
  const Json content = parse_json(json_text(draft_content));
  return description_in(Fields(content, "", refuse));
}

void write_manifest(const std::filesystem::path& directory, Manifest& manifest) {
  Json content = without_root_hash(manifest);
  manifest.root_hash = root_hash_of(content);
  content["root_hash"] = manifest.root_hash;
  const std::string text = json_lines(content) + '\n';
  manifest_in(text, unwritable(directory / manifest_file));
  write_file_atomically(directory / manifest_file, text);
}

}  // namespace lockstep
