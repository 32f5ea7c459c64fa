#include "dataset/dataset.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include "dataset/shards/block_check.hpp"
#include "dataset/shards/shard.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {

struct Dataset::OpenShard {
  OpenShard(std::int32_t shard_number, const std::filesystem::path& directory, const Manifest& manifest,
            const ShardEntry& entry)
      : number(shard_number),
        reader(directory, manifest, entry),
        check(reader.path(), reader.mapped(), entry, manifest.block_bytes) {}

  std::int32_t number;  // from rank_status::register_shard
  ShardReader reader;
  BlockCheck check;
};

Dataset::Dataset(const std::filesystem::path& directory) : manifest_(read_manifest(directory)), first_sample_{0} {
  rank_status::enter(Phase::opening_data);
  for (const ShardEntry& entry : manifest_.shards) {
    const std::int32_t number = rank_status::register_shard(directory / entry.file);
    rank_status::begin_reading(number);
    shards_.push_back(std::make_unique<OpenShard>(number, directory, manifest_, entry));
    first_sample_.push_back(first_sample_.back() + entry.samples);
  }
  rank_status::end_reading();
}

// Destroys shards in reverse order, because guards of mapped files form a linked list with the newest at its head.
Dataset::~Dataset() {
  while (!shards_.empty()) shards_.pop_back();
}

void Dataset::normalize_by(std::vector<float> mean, std::vector<float> deviation) {
  assert(mean.size() == manifest_.mean.size() && deviation.size() == manifest_.deviation.size());
  manifest_.mean = std::move(mean);
  manifest_.deviation = std::move(deviation);
}

Picture Dataset::picture(std::int64_t sample) const {
  const Place place = find(sample);
  assert(manifest_.store != SampleStore::jpeg);
  return {place.shard.reader.stored(place.index), place.shard.reader.size(place.index)};
}

std::span<const std::byte> Dataset::jpeg(std::int64_t sample) const {
  const Place place = find(sample);
  assert(manifest_.store == SampleStore::jpeg);
  return std::as_bytes(place.shard.reader.stored(place.index));
}

PictureSize Dataset::picture_size(std::int64_t sample) const {
  const Place place = find(sample);
  return place.shard.reader.size(place.index);
}

void Dataset::begin_reading(std::int64_t sample, std::int64_t epoch) const {
  const Place place = find(sample);
  rank_status::begin_reading(place.shard.number);
  place.shard.check.require_whole(std::as_bytes(place.shard.reader.stored(place.index)), epoch);
  place.shard.check.require_whole(place.shard.reader.label_bytes(place.index), epoch);
}

void Dataset::read_ahead(std::int64_t first, std::int64_t count, std::int64_t epoch) const {
  constexpr std::size_t read_at_once = 64 << 10;  // at most what the system reads around a missing page
  while (count > 0) {
    const Place place = find(first);
    const ShardReader& reader = place.shard.reader;
    const std::int64_t here = std::min(count, reader.samples() - place.index);
    const auto begin = reader.stored(place.index);
    const auto last = reader.stored(place.index + here - 1);
    const auto samples = std::as_bytes(std::span(begin.data(), last.data() + last.size()));
    const auto bytes = place.shard.check.to_be_read(samples, epoch);
    if (bytes.size() > samples.size() || samples.size() > read_at_once) lockstep::read_ahead(bytes);
    first += here;
    count -= here;
  }
}

std::int32_t Dataset::label(std::int64_t sample) const {
  const Place place = find(sample);
  return place.shard.reader.label(place.index);
}

Dataset::Place Dataset::find(std::int64_t sample) const {
  assert(sample >= 0 && sample < samples());
  const auto behind = std::ranges::upper_bound(first_sample_, sample);
  const std::ptrdiff_t shard = std::distance(first_sample_.begin(), behind) - 1;
  return {*shards_[static_cast<std::size_t>(shard)], sample - first_sample_[static_cast<std::size_t>(shard)]};
}

}  // namespace lockstep
