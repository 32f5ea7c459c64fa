#include "dataset/shards/convert.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/progress.hpp"
#include "base/text/counted.hpp"
#include "base/text/printable.hpp"
#include "dataset/same_data.hpp"
#include "dataset/shards/conversion_folder.hpp"
#include "dataset/shards/hash.hpp"
#include "dataset/shards/odd_files.hpp"
#include "dataset/shards/shard.hpp"
#include "dataset/shards/shard_record.hpp"
#include "dataset/shards/split_spec.hpp"
#include "dataset/shards/verify.hpp"
#include "dataset/split.hpp"
#include "runtime/failure/contained_failure.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t record_limit_bytes = std::size_t{64} << 20;

void remove_manifest(const fs::path& folder) {
  std::error_code reason;
  fs::remove(folder / manifest_file, reason);
  require(!reason, Failure::usage, "cannot remove '{}': {}. Choose another --output.",
          (folder / manifest_file).string(), reason.message());
}

// Collects the samples of a shard in their final order.
class ShardSamples {
 public:
  explicit ShardSamples(const SourceDescription& source) : source_(source) {}

  void add(const SourceSample& sample, std::int64_t position, std::int32_t label) {
    if (source_.store == SampleStore::images) require_image(sample.picture, position);
    const bool is_jpeg = source_.store == SampleStore::jpeg;
    samples_.add(is_jpeg ? sample.jpeg : sample.picture.pixels, sample.picture.size, label);
  }

  std::int64_t count() const { return static_cast<std::int64_t>(samples_.labels.size()); }

  std::vector<std::byte> file(std::span<const std::string> classes, const ShardFacts& facts) const {
    return source_.store == SampleStore::images
               ? shard_bytes(source_.shape, classes, samples_.bytes, samples_.labels, facts)
               : picture_shard_bytes(classes, samples_, facts);
  }

 private:
  void require_image(const OwnedPicture& picture, std::int64_t position) const {
    const SampleShape& shape = source_.shape;
    require(picture.size == PictureSize{shape.height, shape.width}, Failure::bad_data,
            "sample {} of '{}' has {} x {} pixels instead of {} x {}. All pictures of a shard must have the same size. "
            "Resize them first.",
            position, source_.source, picture.size.height, picture.size.width, shape.height, shape.width);
  }

  const SourceDescription& source_;
  PictureSamples samples_;
};

Error no_picture(const SplitSpec& plan, const fs::path& folder, const OddFile& first) {
  return {Failure::bad_data,
          fmt::format("none of {} files for '{}' is a readable picture: the first one, '{}', {}. Check the files.",
                      plan.samples.size(), folder.string(), printable(first.file), first.remark)};
}

// Folder names need not be UTF-8, but names in a manifest must be.
void require_own_names(std::vector<std::string> classes) {
  std::ranges::sort(classes);
  const auto twice = std::ranges::adjacent_find(classes);
  if (twice == classes.end()) return;
  throw Error(
      Failure::usage,
      fmt::format("two classes are called '{}' after conversion to UTF-8. They could not be told apart. Rename one.",
                  printable(*twice)));
}

// A network cannot learn a class without samples.
void warn_of_empty_classes(const fs::path& folder) {
  const Manifest manifest = read_manifest(folder);
  std::vector<std::int64_t> counts(manifest.classes.size());
  for (const ShardEntry& entry : manifest.shards) {
    const ShardReader shard(folder, manifest, entry);
    for (std::int64_t sample = 0; sample < shard.samples(); ++sample) {
      ++counts[static_cast<std::size_t>(shard.label(sample))];
    }
  }
  const auto empty = std::ranges::count(counts, 0);
  if (empty == 0) return;
  const auto first = static_cast<std::size_t>(std::ranges::find(counts, 0) - counts.begin());
  log::warning(
      "{} of {} classes have no sample in '{}', the first of them '{}'. A network cannot learn them. Check their "
      "files.",
      empty, counts.size(), folder.string(), printable(manifest.classes[first]));
}

// The same on all ranks that have the same files, in whatever location.
std::string describe_content(const SampleSource& source) {
  const std::string hash = source.content_hash();
  return fmt::format("{} and {} samples{}{}", source.samples(SourceSplit::train), source.samples(SourceSplit::test),
                     hash.empty() ? "" : ", hash ", hash);
}

std::int64_t expected_bytes(const SampleSource& source, const std::vector<SplitSpec>& plans) {
  std::int64_t bytes = 0;
  for (const SplitSpec& plan : plans) {
    for (const std::int64_t sample : plan.samples) bytes += source.expected_bytes(plan.from, sample);
  }
  return bytes;
}

// One run of convert().
class Conversion {
 public:
  // Throws Error(usage) if a manifest cannot describe the source. Does not access the disk.
  Conversion(const Communicator& world, const SampleSource& source, const ConvertOptions& options,
             const std::vector<SplitSpec>& plans)
      : world_(world), source_(source), options_(options) {
    const SourceDescription& from = source.description();
    manifest_.name = from.name;
    manifest_.source = from.source;
    manifest_.store = from.store;
    manifest_.shape = from.shape;
    manifest_.kind = from.kind;
    manifest_.sample_bits = from.sample_bits;
    manifest_.classes = from.classes;
    manifest_ = as_it_will_be_read(split_folder(options.output, Split::train), manifest_);
    manifest_.block_bytes = block_bytes_for(shard_structure_bytes(manifest_.classes), expected_bytes(source, plans));
    require_own_names(manifest_.classes);
  }

  // Collective. Whether every shard of every split exists and is valid.
  bool is_complete(const std::vector<SplitSpec>& plans) const {
    return std::all_of(plans.begin(), plans.end(), [&](const SplitSpec& plan) {
      const fs::path folder = split_folder(options_.output, plan.split);
      bool readable = false;
      if (world_.rank() == 0) {
        try {
          // A run that did not finish leaves records, even after the manifests.
          readable = std::ranges::all_of(record_paths(plan), is_absent) && !is_absent(folder / manifest_file) &&
                     read_manifest(folder).samples() > 0;
        } catch (const Error& damage) {
          log::warning("{} make_shards writes it again.", damage.what());
        }
      }
      if (world_.max(readable ? 1 : 0) == 0) return false;
      return find_damage(world_, folder, read_manifest(folder)).empty();
    });
  }

  // Collective. Writes the shards of one split, then its manifest.
  void write(const SplitSpec& plan) {
    const fs::path folder = split_folder(options_.output, plan.split);
    const std::vector<ShardRange>& ranges = plan.shards;
    const auto own = [&](std::size_t shard) {
      return static_cast<int>(shard % static_cast<std::size_t>(world_.size())) == world_.rank();
    };
    std::int64_t own_samples = 0;
    for (std::size_t shard = 0; shard < ranges.size(); ++shard) {
      if (own(shard)) own_samples += static_cast<std::int64_t>(ranges[shard].end - ranges[shard].first);
    }
    rank_status::enter(Phase::saving);
    std::string lines;
    std::int64_t kept = 0;
    Progress progress(split_name(plan.split), own_samples, "samples");
    for (std::size_t shard = 0; shard < ranges.size(); ++shard) {
      if (own(shard)) lines += to_text(make_shard(plan, folder, shard, ranges[shard], progress, kept)) + '\n';
    }
    progress.finish();
    rank_status::enter(Phase::gathering);
    const auto all_kept = static_cast<std::int64_t>(world_.sum(static_cast<double>(kept)));
    finish_split(plan, folder, world_.gather(lines, 0),
                 all_kept > 0 ? fmt::format(", {} of them kept from an earlier run", all_kept) : "");
  }

  // On rank 0, after all splits are written: writes odd_files.csv and removes the shard records.
  void finish(const std::vector<SplitSpec>& plans) const {
    std::vector<OddFile> odd_files = source_.left_out();
    odd_files.insert(odd_files.end(), odd_files_.begin(), odd_files_.end());
    write_odd_files(options_.output, std::move(odd_files));
    warn_of_empty_classes(split_folder(options_.output, Split::train));
    std::error_code ignored;
    for (const SplitSpec& plan : plans) {
      for (const fs::path& record : record_paths(plan)) fs::remove(record, ignored);
    }
  }

 private:
  // Records are next to the shards until the data set is complete.
  static fs::path record_path(const fs::path& folder, const std::string& shard) {
    return folder / fs::path(shard).replace_extension(".json");
  }
  static std::string shard_file(const SplitSpec& plan, std::size_t shard) {
    return fmt::format("{}-{:05}.h5", split_name(plan.split), shard);
  }
  std::vector<fs::path> record_paths(const SplitSpec& plan) const {
    std::vector<fs::path> paths;
    for (std::size_t shard = 0; shard < plan.shards.size(); ++shard) {
      paths.push_back(record_path(split_folder(options_.output, plan.split), shard_file(plan, shard)));
    }
    return paths;
  }

  ShardRecord make_shard(const SplitSpec& plan, const fs::path& folder, std::size_t shard, const ShardRange& range,
                         Progress& progress, std::int64_t& kept) {
    ShardRecord record{{}, PixelSums(manifest_.shape.channels), {}};
    record.entry.file = shard_file(plan, shard);
    if (std::optional<ShardRecord> before = record_of_earlier_run(folder, record.entry.file)) {
      ++kept;
      progress.add(static_cast<std::int64_t>(range.end - range.first));
      return std::move(*before);
    }
    ShardSamples samples(source_.description());
    SourceSample sample;
    for (std::size_t at = range.first; at < range.end; ++at) {
      sample.remark.clear();
      const std::optional<std::int32_t> label = source_.read(plan.from, plan.samples[at], sample);
      if (!sample.remark.empty()) record.odd_files.push_back({sample.file, !label.has_value(), sample.remark});
      if (label) {
        samples.add(sample, plan.samples[at], *label);
        record.sums.add(sample.picture.pixels);
      }
      progress.add(1);
    }
    if (samples.count() > 0) write_shard(folder, samples, facts_of(plan, record.sums), record.entry, kept);
    if (!source_.description().fingerprint.empty()) {
      write_file_atomically(record_path(folder, record.entry.file), to_text(record) + '\n');
    }
    return record;
  }

  ShardFacts facts_of(const SplitSpec& plan, const PixelSums& sums) const {
    Manifest own;
    sums.set_statistics(own);
    return {manifest_.name, split_name(plan.split), manifest_.kind, manifest_.store, manifest_.shape,
            own.mean,       own.deviation};
  }

  void write_shard(const fs::path& folder, const ShardSamples& samples, const ShardFacts& facts, ShardEntry& entry,
                   std::int64_t& kept) const {
    const std::vector<std::byte> bytes = samples.file(manifest_.classes, facts);
    entry = {std::move(entry.file), samples.count(), static_cast<std::int64_t>(bytes.size()), xxh3_128_hex(bytes),
             block_hashes(bytes, manifest_.block_bytes)};
    if (!damage_of(folder, entry, manifest_.block_bytes)) {
      ++kept;
    } else {
      write_file_atomically(folder / entry.file, std::span<const std::byte>(bytes));
    }
  }

  // The record of a shard that need not be written again: from the same source, and valid.
  std::optional<ShardRecord> record_of_earlier_run(const fs::path& folder, const std::string& shard) const {
    const fs::path path = record_path(folder, shard);
    if (source_.description().fingerprint.empty() || is_absent(path)) return std::nullopt;
    std::optional<ShardRecord> record =
        shard_record_from(read_file(path, record_limit_bytes), manifest_.shape.channels);
    if (!record || record->entry.file != shard) return std::nullopt;
    const ShardEntry& entry = record->entry;
    if (entry.samples == 0) return record;
    // An earlier version may have chosen other blocks.
    const auto blocks = static_cast<std::size_t>((entry.bytes + manifest_.block_bytes - 1) / manifest_.block_bytes);
    const bool is_right = entry.block_hashes.size() == blocks && !damage_of(folder, entry, manifest_.block_bytes);
    return is_right ? std::move(record) : std::nullopt;
  }

  // Rank 0 writes the manifest.
  void finish_split(const SplitSpec& plan, const fs::path& folder, const std::vector<std::string>& lines_by_rank,
                    const std::string& kept_text) {
    if (world_.rank() != 0) return;
    std::vector<ShardRecord> records;
    for (const std::string& words : lines_by_rank) {
      std::istringstream lines(words);
      for (std::string line; std::getline(lines, line);) {
        // NOLINTNEXTLINE(bugprone-unchecked-optional-access): a rank's own words
        records.push_back(shard_record_from(line, manifest_.shape.channels).value());
      }
    }
    std::ranges::sort(records, {}, [](const ShardRecord& record) { return record.entry.file; });
    PixelSums sums(manifest_.shape.channels);
    manifest_.shards.clear();
    for (const ShardRecord& record : records) {
      sums.add(record.sums);
      odd_files_.insert(odd_files_.end(), record.odd_files.begin(), record.odd_files.end());
      if (record.entry.samples > 0) manifest_.shards.push_back(record.entry);
    }
    if (manifest_.shards.empty()) throw no_picture(plan, folder, records.front().odd_files.front());
    if (plan.split == Split::train) sums.set_statistics(manifest_);
    write_manifest(folder, manifest_);
    // Together with the samples, the number of files that the listing counted.
    const auto files = std::ssize(plan.samples) - manifest_.samples();
    const std::string left_out = files == 0 ? "" : fmt::format(", {} left out", counted(files, "file"));
    log::info("{}: {} in {}{}{}", folder.string(), counted(manifest_.samples(), "sample"),
              counted(manifest_.shards.size(), "shard"), kept_text, left_out);
  }

  const Communicator& world_;
  const SampleSource& source_;
  const ConvertOptions& options_;
  Manifest manifest_;
  std::vector<OddFile> odd_files_;
};

}  // namespace

void convert(const Communicator& world, const SampleSource& source, const ConvertOptions& options) {
  require_same_on_ranks(world, {{"source files", describe_content(source)}}, same_files_advice);
  std::map<std::int64_t, std::int64_t> copies;
  if (options.validation > 0) copies = source.training_copies(world);
  const std::vector<SplitSpec> plans = plan_splits(source, options, copies);
  Conversion conversion(world, source, options, plans);
  std::optional<Descriptor> held;
  on_rank_0(world, [&] { held.emplace(prepare_conversion_folder(source, std::ssize(copies), options)); });
  if (conversion.is_complete(plans)) {
    return log::info("'{}' is already complete: all shards were read again and are valid.", options.output.string());
  }
  // A manifest states that all shards are valid, so it is removed until they are.
  if (world.rank() == 0) {
    for (const SplitSpec& plan : plans) remove_manifest(split_folder(options.output, plan.split));
  }
  world.barrier();
  for (const SplitSpec& plan : plans) conversion.write(plan);
  if (world.rank() == 0) conversion.finish(plans);
  // Other ranks may read the last manifest only after this barrier.
  world.barrier();
}

}  // namespace lockstep
