#include "dataset/shards/conversion_folder.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/io/leased_file.hpp"
#include "base/system_failure.hpp"
#include "base/text/json_text.hpp"
#include "dataset/split.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* record_file = "conversion.json";
constexpr std::size_t record_limit_bytes = 1 << 16;

constexpr const char* files_hash = "files";  // also changes with other options

Json record_of(const SampleSource& source, std::int64_t copies, const ConvertOptions& options) {
  const SourceDescription& from = source.description();
  Json record = {{"source", from.source},
                 {"training_samples", source.samples(SourceSplit::train)},
                 {"validation", options.validation},
                 {"seed", options.seed}};
  const bool is_images = from.store == SampleStore::images;
  if (is_images) {
    record["samples_per_shard"] = options.samples_per_shard;
  } else {
    record["bytes_per_shard"] = options.bytes_per_shard;
  }
  const std::string hash = is_images ? source.content_hash() : from.fingerprint;
  if (!hash.empty()) record[files_hash] = hash;
  // Earlier versions drew each copy on its own.
  if (copies > 0) record["copies"] = copies;
  // A round trip through text, so that a path that is not UTF-8 compares equal to the stored one.
  return parse_json(json_text(record));
}

// Names the option or the input that changed.
std::string record_error_message(const std::string& name) {
  if (name == "source") return "the source (--source)";
  if (name == "training_samples") return "the number of training samples in --source";
  if (name == "copies") return "the number of copies that --validation keeps together";
  if (name == "samples_per_shard") return "--samples-per-shard";
  if (name == "bytes_per_shard") return "--shard-megabytes";
  return "--" + name;
}

// If only the storage differs: its text in `before`, the text of another source.
std::optional<std::string> other_storage(const std::string& before, const SourceDescription& now) {
  const std::size_t at = now.storage.empty() ? std::string::npos : now.source.find(now.storage);
  if (at == std::string::npos) return std::nullopt;
  const std::string begin = now.source.substr(0, at);
  const std::string end = now.source.substr(at + now.storage.size());
  const bool is_there =
      before.size() >= begin.size() + end.size() && before.starts_with(begin) && before.ends_with(end);
  return is_there ? std::optional(before.substr(at, before.size() - begin.size() - end.size())) : std::nullopt;
}

// "--samples-per-shard was 500 and is 400 now", for the first difference.
std::string difference(const Json& before, const Json& now, const SourceDescription& source) {
  const auto old_value = [&](const std::string& name) {
    return before.is_object() && before.contains(name) ? before.at(name) : Json();
  };
  for (const auto& [name, value] : now.items()) {
    const Json old = old_value(name);
    if (old == value || name == files_hash) continue;
    const std::optional<std::string> storage =
        name == "source" && old.is_string() ? other_storage(old.get<std::string>(), source) : std::nullopt;
    if (storage) {
      return fmt::format(
          "pictures were stored {}, and are now stored {} (--store, --side, --max-side, --quality, --sample-bits)",
          *storage, source.storage);
    }
    return fmt::format("{} was {} and is now {}", record_error_message(name), json_text(old), json_text(value));
  }
  // Earlier versions recorded it for pictures only.
  const bool has_other_files = now.contains(files_hash) && before.contains(files_hash) &&
                               now.at(files_hash) != before.at(files_hash) &&
                               before.at(files_hash) != Json(source.earlier_fingerprint);
  return has_other_files ? "the files of --source differ from those of the first run" : "";
}

void make_folder(const fs::path& folder) {
  std::error_code reason;
  fs::create_directories(folder, reason);
  if (reason) {
    throw system_failure(fmt::format("cannot create the folder '{}'", folder.string()), reason.value(), Access::writing,
                         "--output");
  }
}

// Two concurrent runs would remove each other's partial files.
Descriptor keep_others_out(const fs::path& folder) {
  std::optional<Descriptor> lease = lease_folder(folder);
  require(lease.has_value(), Failure::usage,
          "another make_shards is writing into '{}'. Each would remove the other's files. Wait for it, or choose "
          "another --output.",
          folder.string());
  return std::move(*lease);
}

}  // namespace

Descriptor prepare_conversion_folder(const SampleSource& source, std::int64_t copies, const ConvertOptions& options) {
  const fs::path& output = options.output;
  std::error_code reason;
  require(!fs::exists(output, reason) || fs::is_directory(output, reason), Failure::usage,
          "'{}' is not a directory (--output). Choose a folder.", output.string());
  make_folder(output);
  Descriptor held = keep_others_out(output);

  const Json now = record_of(source, copies, options);
  const fs::path record = output / record_file;
  if (!is_absent(record)) {
    const Json before = try_parse_json(read_file(record, record_limit_bytes));
    const std::string differs = difference(before, now, source.description());
    require(differs.empty(), Failure::usage,
            "'{}' was started with other options: {}. Two data sets must not be mixed. Choose another --output, or "
            "remove the folder.",
            output.string(), differs);
  } else {
    remove_partial_files(output);
    const fs::directory_iterator entries(output, reason);
    if (reason) {
      throw system_failure(fmt::format("cannot list the folder '{}'", output.string()), reason.value(), Access::reading,
                           "--output");
    }
    require(entries == fs::directory_iterator(), Failure::usage,
            "'{}' is not empty and was not made by make_shards (--output). Choose another folder.", output.string());
    const std::string text = json_lines(now) + '\n';
    require(text.size() <= record_limit_bytes, Failure::usage,
            "'{}' would have more than {} bytes. Later runs could not read it. Use a shorter path for --source.",
            record.string(), record_limit_bytes);
    write_file_atomically(record, text);
  }
  for (const auto& split : splits) {
    if (split.value == Split::validation && options.validation == 0 && source.description().validation.empty())
      continue;
    make_folder(output / split.name);
    remove_partial_files(output / split.name);
  }
  return held;
}

}  // namespace lockstep
