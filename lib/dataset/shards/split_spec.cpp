#include "dataset/shards/split_spec.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"

namespace lockstep {
namespace {

std::vector<std::int64_t> all_samples(std::int64_t count) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(count));
  std::iota(samples.begin(), samples.end(), 0);
  return samples;
}

std::vector<SplitSpec> splits_of(const SampleSource& source, const ConvertOptions& options,
                                 const std::map<std::int64_t, std::int64_t>& copies) {
  const std::int64_t count = source.samples(SourceSplit::train);
  require(options.validation >= 0 && options.validation < count, Failure::usage,
          "{} validation samples cannot be taken from {} training samples (--validation). Choose a smaller number.",
          options.validation, count);
  const std::string& validation = source.description().validation;
  require(options.validation == 0 || validation.empty(), Failure::usage,
          "--validation takes samples from the training split, but '{}' is already a validation split. Leave out "
          "--validation, or leave out the folder with --skip.",
          validation);
  std::vector<std::int64_t> shuffled = all_samples(count);
  const auto original = [&](std::int64_t sample) {
    const auto copy = copies.find(sample);
    return copy == copies.end() ? sample : copy->second;
  };
  const auto order = [&](std::int64_t sample) {
    const std::int64_t first = original(sample);
    const auto drawn =
        philox(options.seed, static_cast<std::uint64_t>(Stream::split) << 32, static_cast<std::uint64_t>(first));
    return std::tuple(drawn, first, sample);
  };
  auto middle = shuffled.begin();
  if (options.validation > 0) {
    const auto last = middle + options.validation - 1;
    std::nth_element(middle, last, shuffled.end(), [&](std::int64_t a, std::int64_t b) { return order(a) < order(b); });
    middle = std::partition(last + 1, shuffled.end(),
                            [&](std::int64_t sample) { return original(sample) == original(*last); });
    require(middle != shuffled.end(), Failure::usage,
            "{} validation samples and their copies are all {} training samples (--validation). Choose a smaller "
            "number.",
            options.validation, count);
  }
  std::sort(shuffled.begin(), middle);
  std::sort(middle, shuffled.end());

  std::vector<SplitSpec> plans;
  plans.push_back({Split::train, SourceSplit::train, {middle, shuffled.end()}, {}});
  if (options.validation > 0) plans.push_back({Split::validation, SourceSplit::train, {shuffled.begin(), middle}, {}});
  if (!validation.empty()) {
    plans.push_back(
        {Split::validation, SourceSplit::validation, all_samples(source.samples(SourceSplit::validation)), {}});
  }
  plans.push_back({Split::test, SourceSplit::test, all_samples(source.samples(SourceSplit::test)), {}});
  return plans;
}

// Limited by number of samples if all have one size, otherwise by bytes.
std::vector<ShardRange> shards_of(const SplitSpec& plan, const SampleSource& source, const ConvertOptions& options) {
  std::vector<ShardRange> ranges;
  const bool by_number = source.description().store == SampleStore::images;
  std::int64_t bytes = 0;
  for (std::size_t at = 0; at < plan.samples.size(); ++at) {
    const std::int64_t expected = by_number ? 0 : source.expected_bytes(plan.from, plan.samples[at]);
    const bool is_full =
        !ranges.empty() && (by_number ? std::cmp_equal(at - ranges.back().first, options.samples_per_shard)
                                      : bytes + expected > options.bytes_per_shard);
    if (ranges.empty() || is_full) {
      ranges.push_back({at, at});
      bytes = 0;
    }
    ranges.back().end = at + 1;
    bytes += expected;
  }
  return ranges;
}

constexpr std::size_t max_shards = 100'000;  // shard names have five digits

void require_count(std::size_t shards, const std::string& message, const char* option) {
  require(shards < max_shards, Failure::usage, "{} would make more than {} shards ({}). Choose a larger number.",
          message, max_shards, option);
}

// A shard is created in memory.
void require_shard_samples(const SampleShape& shape, std::size_t largest_split, const ConvertOptions& options) {
  constexpr std::int64_t max_bytes = std::int64_t{1} << 31;
  const std::int64_t most = max_bytes / (shape.height * shape.width * shape.channels);
  require(options.samples_per_shard > 0 && options.samples_per_shard <= most, Failure::usage,
          "{} samples do not fit into one shard (--samples-per-shard). Choose a number from 1 to {}.",
          options.samples_per_shard, most);
  require_count(largest_split / static_cast<std::size_t>(options.samples_per_shard),
                fmt::format("{} samples per shard", options.samples_per_shard), "--samples-per-shard");
}

}  // namespace

std::vector<SplitSpec> plan_splits(const SampleSource& source, const ConvertOptions& options,
                                   const std::map<std::int64_t, std::int64_t>& copies) {
  std::vector<SplitSpec> plans = splits_of(source, options, copies);
  const SourceDescription& description = source.description();
  if (description.store == SampleStore::images) {
    const std::size_t largest = std::max(plans.front().samples.size(), plans.back().samples.size());
    require_shard_samples(description.shape, largest, options);
  }
  for (SplitSpec& plan : plans) {
    plan.shards = shards_of(plan, source, options);
    if (description.store == SampleStore::images) continue;
    require_count(plan.shards.size(), fmt::format("{} bytes per shard", options.bytes_per_shard), "--shard-megabytes");
  }
  return plans;
}

}  // namespace lockstep
