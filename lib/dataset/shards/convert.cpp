#include "dataset/shards/convert.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <numeric>
#include <sstream>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/progress.hpp"
#include "base/random.hpp"
#include "dataset/shards/conversion_folder.hpp"
#include "dataset/shards/hash.hpp"
#include "dataset/shards/shard.hpp"
#include "dataset/shards/verify.hpp"
#include "dataset/split.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

struct SplitPlan {
  Split split;
  SourceSplit from;
  std::vector<std::int64_t> samples;  // positions in the source
};

struct Samples {
  std::vector<std::uint8_t> images;
  std::vector<std::int32_t> labels;
};

// Sums over the training set. Whole numbers below 2^53, so that no order of adding them changes the result.
struct PixelSums {
  std::vector<double> values;
  std::vector<double> squares;
  double pixels = 0;

  explicit PixelSums(std::int64_t channels)
      : values(static_cast<std::size_t>(channels)), squares(static_cast<std::size_t>(channels)) {}

  void add(std::span<const std::uint8_t> images) {
    const std::size_t channels = values.size();
    assert(channels > 0);
    for (std::size_t channel = 0; channel < channels; ++channel) {
      std::uint64_t sum = 0;
      std::uint64_t square = 0;
      for (std::size_t at = channel; at < images.size(); at += channels) {
        sum += images[at];
        square += std::uint64_t{images[at]} * images[at];
      }
      values[channel] += static_cast<double>(sum);
      squares[channel] += static_cast<double>(square);
    }
    const std::size_t samples_pixels = images.size() / channels;
    pixels += static_cast<double>(samples_pixels);
  }

  // Collective.
  void add_over_ranks(const Communicator& world) {
    for (double& value : values) value = world.sum(value);
    for (double& square : squares) square = world.sum(square);
    pixels = world.sum(pixels);
  }
};

void set_statistics(const PixelSums& sums, Manifest& manifest) {
  for (std::size_t channel = 0; channel < sums.values.size(); ++channel) {
    const double mean = sums.values[channel] / sums.pixels;
    const double variance = sums.squares[channel] / sums.pixels - mean * mean;
    const double deviation = std::sqrt(std::max(variance, 0.0)) / 255;
    manifest.mean.push_back(static_cast<float>(mean / 255));
    manifest.deviation.push_back(std::max(static_cast<float>(deviation), smallest_deviation));
  }
}

std::vector<std::int64_t> all_samples(std::int64_t count) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(count));
  std::iota(samples.begin(), samples.end(), 0);
  return samples;
}

// The validation set: those samples of the training set that draw the smallest numbers.
std::vector<SplitPlan> splits_of(const SampleSource& source, const ConvertOptions& options) {
  const std::int64_t count = source.samples(SourceSplit::train);
  require(options.validation >= 0 && options.validation < count, Failure::usage,
          "{} samples cannot be split off {} training samples (--validation). Give a smaller number.",
          options.validation, count);
  std::vector<std::int64_t> shuffled = all_samples(count);
  const auto drawn = [&](std::int64_t sample) {
    return philox(options.seed, static_cast<std::uint64_t>(Stream::split) << 32, static_cast<std::uint64_t>(sample));
  };
  const auto middle = shuffled.begin() + options.validation;
  std::nth_element(shuffled.begin(), middle, shuffled.end(),
                   [&](std::int64_t a, std::int64_t b) { return std::pair(drawn(a), a) < std::pair(drawn(b), b); });
  std::sort(shuffled.begin(), middle);
  std::sort(middle, shuffled.end());

  std::vector<SplitPlan> plans;
  plans.push_back({Split::train, SourceSplit::train, {middle, shuffled.end()}});
  if (options.validation > 0) plans.push_back({Split::validation, SourceSplit::train, {shuffled.begin(), middle}});
  plans.push_back({Split::test, SourceSplit::test, all_samples(source.samples(SourceSplit::test))});
  return plans;
}

Samples read_samples(const SampleSource& source, SourceSplit from, std::span<const std::int64_t> positions) {
  const SampleShape& shape = source.description().shape;
  Samples samples;
  samples.images.reserve(positions.size() * static_cast<std::size_t>(shape.height * shape.width * shape.channels));
  OwnedPicture picture;
  for (const std::int64_t position : positions) {
    samples.labels.push_back(source.read(from, position, picture));
    require(
        picture.size == PictureSize{shape.height, shape.width}, Failure::bad_data,
        "sample {} of '{}' has {} x {} pixels and not {} x {} (a shard holds pictures of one size). Bring all to one "
        "size first.",
        position, source.description().source, picture.size.height, picture.size.width, shape.height, shape.width);
    samples.images.insert(samples.images.end(), picture.pixels.begin(), picture.pixels.end());
  }
  return samples;
}

void remove_manifest(const fs::path& folder) {
  std::error_code reason;
  fs::remove(folder / manifest_file, reason);
  require(!reason, Failure::usage, "cannot remove '{}': {}. Choose another --output.",
          (folder / manifest_file).string(), reason.message());
}

ShardEntry describe(std::string file, std::int64_t samples, std::span<const std::byte> bytes,
                    std::int64_t block_bytes) {
  return {std::move(file), samples, static_cast<std::int64_t>(bytes.size()), xxh3_128_hex(bytes),
          block_hashes(bytes, block_bytes)};
}

// Between our own ranks: words without spaces.
std::string to_words(const ShardEntry& entry) {
  return fmt::format("{} {} {} {} {}\n", entry.file, entry.samples, entry.bytes, entry.hash,
                     fmt::join(entry.block_hashes, " "));
}

ShardEntry from_words(const std::string& line) {
  std::istringstream words(line);
  ShardEntry entry;
  words >> entry.file >> entry.samples >> entry.bytes >> entry.hash;
  for (std::string hash; words >> hash;) entry.block_hashes.push_back(hash);
  return entry;
}

// One run of convert().
class Conversion {
 public:
  // Throws Error(usage) if no manifest can say what the source is. Touches nothing on disk.
  Conversion(const Communicator& world, const SampleSource& source, const ConvertOptions& options)
      : world_(world), source_(source), options_(options), sums_(source.description().shape.channels) {
    const SourceDescription& from = source.description();
    manifest_.name = from.name;
    manifest_.source = from.source;
    manifest_.shape = from.shape;
    manifest_.kind = from.kind;
    manifest_.classes = from.classes;
    manifest_ = as_it_will_be_read(split_folder(options.output, Split::train), manifest_);
  }

  // Collective. Whether every shard of every split is there and right.
  bool is_complete(const std::vector<SplitPlan>& plans) const {
    return std::all_of(plans.begin(), plans.end(), [&](const SplitPlan& plan) {
      const fs::path folder = split_folder(options_.output, plan.split);
      bool readable = false;
      if (world_.rank() == 0) {
        try {
          readable = !is_absent(folder / manifest_file) && read_manifest(folder).samples() > 0;
        } catch (const Error& damage) {
          log::warning("{} It is made again.", damage.what());
        }
      }
      if (world_.max(readable ? 1 : 0) == 0) return false;
      return find_damage(world_, folder, read_manifest(folder)).empty();
    });
  }

  // Collective. The shards of one split, then its manifest.
  void write(const SplitPlan& plan) {
    const fs::path folder = split_folder(options_.output, plan.split);
    std::string words;
    std::int64_t kept = 0;
    Progress progress(split_name(plan.split), own_samples(plan), "samples");
    for (std::int64_t shard = world_.rank(); shard < shards_of(plan); shard += world_.size()) {
      words += to_words(write_shard(plan, folder, shard, kept));
      progress.add(static_cast<std::int64_t>(positions_of(plan, shard).size()));
    }
    progress.finish();
    if (plan.split == Split::train) sums_.add_over_ranks(world_);
    const auto all_kept = static_cast<std::int64_t>(world_.sum(static_cast<double>(kept)));
    write_split_manifest(plan, folder, world_.gather(words, 0));
    log::info("{}: {} samples in {} shards{}", folder.string(), plan.samples.size(), shards_of(plan),
              all_kept > 0 ? fmt::format(", {} of them kept from an earlier run", all_kept) : "");
  }

 private:
  std::int64_t shards_of(const SplitPlan& plan) const {
    const auto samples = static_cast<std::int64_t>(plan.samples.size());
    return samples / options_.samples_per_shard + (samples % options_.samples_per_shard == 0 ? 0 : 1);
  }

  std::span<const std::int64_t> positions_of(const SplitPlan& plan, std::int64_t shard) const {
    const auto first = static_cast<std::size_t>(shard * options_.samples_per_shard);
    const std::size_t left = plan.samples.size() - first;
    return std::span(plan.samples).subspan(first, std::min(left, static_cast<std::size_t>(options_.samples_per_shard)));
  }

  std::int64_t own_samples(const SplitPlan& plan) const {
    std::int64_t sum = 0;
    for (std::int64_t shard = world_.rank(); shard < shards_of(plan); shard += world_.size()) {
      sum += static_cast<std::int64_t>(positions_of(plan, shard).size());
    }
    return sum;
  }

  ShardEntry write_shard(const SplitPlan& plan, const fs::path& folder, std::int64_t shard, std::int64_t& kept) {
    const Samples samples = read_samples(source_, plan.from, positions_of(plan, shard));
    if (plan.split == Split::train) sums_.add(samples.images);
    const std::vector<std::byte> bytes =
        shard_bytes(manifest_.shape, manifest_.classes, samples.images, samples.labels);
    ShardEntry entry = describe(fmt::format("{}-{:05}.h5", split_name(plan.split), shard),
                                static_cast<std::int64_t>(samples.labels.size()), bytes, manifest_.block_bytes);
    if (!damage_of(folder, entry, manifest_.block_bytes)) {
      ++kept;
    } else {
      write_file_atomically(folder / entry.file, std::span<const std::byte>(bytes));
    }
    return entry;
  }

  void write_split_manifest(const SplitPlan& plan, const fs::path& folder,
                            const std::vector<std::string>& words_by_rank) {
    if (world_.rank() != 0) return;
    if (plan.split == Split::train) set_statistics(sums_, manifest_);
    manifest_.shards.clear();
    for (const std::string& words : words_by_rank) {
      std::istringstream lines(words);
      for (std::string line; std::getline(lines, line);) manifest_.shards.push_back(from_words(line));
    }
    std::sort(manifest_.shards.begin(), manifest_.shards.end(),
              [](const ShardEntry& a, const ShardEntry& b) { return a.file < b.file; });
    write_manifest(folder, manifest_);
  }

  const Communicator& world_;
  const SampleSource& source_;
  const ConvertOptions& options_;
  PixelSums sums_;
  Manifest manifest_;
};

}  // namespace

void convert(const Communicator& world, const SampleSource& source, const ConvertOptions& options) {
  constexpr std::int64_t most_bytes = std::int64_t{1} << 31;
  const SampleShape& shape = source.description().shape;
  const std::int64_t most = most_bytes / (shape.height * shape.width * shape.channels);
  require(options.samples_per_shard > 0 && options.samples_per_shard <= most, Failure::usage,
          "{} samples cannot be in one shard (--samples-per-shard). Give a number from 1 to {}.",
          options.samples_per_shard, most);
  const std::vector<SplitPlan> plans = splits_of(source, options);
  constexpr std::size_t most_shards = 100'000;  // five digits in their names
  const std::size_t largest = std::max(plans.front().samples.size(), plans.back().samples.size());
  require(largest / static_cast<std::size_t>(options.samples_per_shard) < most_shards, Failure::usage,
          "{} samples a shard make more than {} shards (--samples-per-shard). Give a larger number.",
          options.samples_per_shard, most_shards);

  Conversion conversion(world, source, options);
  if (world.rank() == 0) prepare_conversion_folder(source.description(), source.samples(SourceSplit::train), options);
  world.barrier();
  if (conversion.is_complete(plans)) {
    return log::info("'{}' is complete already: every shard was read again and is right.", options.output.string());
  }
  // A manifest stands for shards that are all right; until they are, there is none.
  if (world.rank() == 0) {
    for (const SplitPlan& plan : plans) remove_manifest(split_folder(options.output, plan.split));
  }
  world.barrier();
  for (const SplitPlan& plan : plans) conversion.write(plan);
  // Only now may another rank read the last manifest.
  world.barrier();
}

}  // namespace lockstep
