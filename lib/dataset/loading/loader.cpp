#include "dataset/loading/loader.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text/counted.hpp"
#include "base/text/printable.hpp"
#include "dataset/loading/augmented_reader.hpp"
#include "dataset/loading/normalizer.hpp"
#include "dataset/loading/prefetch_ring.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {
namespace {

// A micro-batch in aligned memory, in the layout that the CPU's first convolution reads.
class HostMicroBatch {
 public:
  HostMicroBatch(std::int64_t places, const SampleShape& shape, const MicroBatchSampler& sampler)
      : images_(reserve(places * shape.height * shape.width * shape.channels * size_of(DType::f32))),
        labels_(reserve(places * size_of(DType::i32))),
        others_(reserve(sampler.mixes() ? places * size_of(DType::i32) : 0)),
        shares_(reserve(sampler.mixes() ? places * size_of(DType::f32) : 0)) {
    const Shape dims{places, shape.height, shape.width, shape.channels};
    const std::int64_t bytes = dims.count() * size_of(DType::f32);
    batch.images = Tensor(images_.front().bytes.data(), bytes, dims, DType::f32, Layout::images);
    batch.labels = row(labels_, places, DType::i32);
    if (!sampler.mixes()) return;
    batch.others = row(others_, places, DType::i32);
    batch.shares = row(shares_, places, DType::f32);
  }

  Batch batch;

 private:
  struct alignas(Arena::alignment) CacheLine {
    std::array<std::byte, Arena::alignment> bytes;
  };
  static std::vector<CacheLine> reserve(std::int64_t bytes) {
    return std::vector<CacheLine>(static_cast<std::size_t>((bytes + Arena::alignment - 1) / Arena::alignment));
  }
  static Tensor row(std::vector<CacheLine>& memory, std::int64_t places, DType dtype) {
    return Tensor(memory.front().bytes.data(), places * size_of(dtype), Shape{places}, dtype, Layout::plain);
  }

  std::vector<CacheLine> images_;
  std::vector<CacheLine> labels_;
  std::vector<CacheLine> others_;
  std::vector<CacheLine> shares_;
};

// image = share * image + (1 - share) * other
void mix(std::span<float> image, std::span<const float> other, float share) {
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = share * image[i] + (1 - share) * other[i];
}

// The same for two images at once, each mixed with the unmodified other one.
void mix_both(std::span<float> image, float share, std::span<float> other, float other_share) {
  for (std::size_t i = 0; i < image.size(); ++i) {
    const float value = image[i];
    const float other_value = other[i];
    image[i] = share * value + (1 - share) * other_value;
    other[i] = other_share * other_value + (1 - other_share) * value;
  }
}

class HostLoader final : public Loader {
 public:
  explicit HostLoader(const LoaderSource& source)
      : source_(source),
        normalizer_(image_shape(source), manifest().mean, manifest().deviation),
        ring_([this] { return HostMicroBatch(source_.places, image_shape(source_), *source_.sampler); },
              [this](std::int64_t micro_batch, HostMicroBatch& memory) { fill(micro_batch, memory.batch); },
              source.threads) {}

  const Batch& next() override { return ring_.next().batch; }
  double waited_ms() const override { return ring_.waited_ms(); }

 private:
  const Manifest& manifest() const { return source_.dataset->manifest(); }

  // Writes every index of `batch`: those without a sample get zeros and label -1.
  void fill(std::int64_t micro_batch, Batch& batch) const {
    const MicroBatchRange place = source_.sampler->place(micro_batch);
    const std::int64_t places = batch.labels.shape()[0];
    const auto image_count = static_cast<std::size_t>(batch.images.shape().count() / places);
    AugmentedReader reader(*source_.dataset, source_.rules);
    auto* image = batch.images.as<float>();
    auto* const labels = batch.labels.as<std::int32_t>();
    const auto read = [&](std::int64_t position, std::span<float> to) {
      const std::int64_t sample = source_.sampler->sample_at(place, position);
      source_.dataset->begin_reading(sample, place.epoch);
      const AugmentationParams augmentation =
          source_.sampler->augmentation_at(place, position, source_.dataset->picture_size(sample));
      const AugmentedPicture seen = reader.read(sample, augmentation);
      normalizer_.write(seen.picture, seen.augmentation, to);
      return source_.dataset->label(sample);
    };
    for (std::int64_t i = 0; i < place.samples; ++i, image += image_count) {
      const std::int64_t position = place.first + i;
      if (const auto ahead = source_.sampler->needed_ahead(place, position)) {
        source_.dataset->read_ahead(ahead->first, ahead->count, place.epoch);
      }
      labels[i] = read(position, {image, image_count});
    }
    if (source_.sampler->mixes()) mix_images(place, batch, read);
    rank_status::end_reading();
    std::fill(image, image + (places - place.samples) * static_cast<std::int64_t>(image_count), 0.0F);
    std::fill(labels + place.samples, labels + places, -1);
    batch.samples = place.samples;
  }

  // Partners in another micro-batch are read for this one too.
  template <typename Read>
  void mix_images(const MicroBatchRange& place, Batch& batch, const Read& read) const {
    const auto image_count = static_cast<std::size_t>(batch.images.shape().count() / batch.labels.shape()[0]);
    const auto image_at = [&](std::int64_t i) {
      return std::span(batch.images.as<float>() + i * static_cast<std::int64_t>(image_count), image_count);
    };
    const auto* const labels = batch.labels.as<std::int32_t>();
    auto* const others = batch.others.as<std::int32_t>();
    auto* const shares = batch.shares.as<float>();
    std::vector<float> outside;
    for (std::int64_t i = 0; i < place.samples; ++i) {
      const MixPartner partner = source_.sampler->partner_of(place, place.first + i);
      const std::int64_t other = partner.position - place.first;
      shares[i] = partner.share;
      if (other >= 0 && other < place.samples) {
        others[i] = labels[other];
        if (other <= i) continue;
        mix_both(image_at(i), partner.share, image_at(other),
                 source_.sampler->partner_of(place, partner.position).share);
      } else {
        outside.resize(image_count);
        others[i] = read(partner.position, outside);
        mix(image_at(i), outside, partner.share);
      }
    }
  }

  LoaderSource source_;
  Normalizer normalizer_;
  PrefetchRing<HostMicroBatch> ring_;  // after the other members, because its threads use them
};

}  // namespace

void require_can_show(const Dataset& dataset, const ImageRules& rules) {
  const std::string name = printable(dataset.manifest().name);
  const std::int64_t channels = dataset.manifest().shape.channels;
  require(!rules.resamples() || channels == 3, Failure::usage,
          "the data set '{}' has {}. Only pictures of 3 channels can be resized. Leave out --image-size, "
          "--test-image-size, --resize and resized crops (--augment).",
          name, counted(channels, "channel"));
  require(!rules.jitter || channels == 3, Failure::usage,
          "the data set '{}' has {}. Only pictures of 3 channels have colors. Leave out --color-jitter.", name,
          counted(channels, "channel"));
  const std::int64_t side = std::min(rules.size.height, rules.size.width);
  require(!rules.cutout || *rules.cutout <= side, Failure::usage,
          "--cutout {} is larger than the images of {} x {} pixels. It would erase many images completely. Choose at "
          "most {}.",
          rules.cutout.value_or(0), rules.size.height, rules.size.width, side);
}

LoaderSource training_source(const Dataset& dataset, const LoaderShare& share, const ImageRules& rules,
                             std::uint64_t seed, std::int64_t epoch, std::int64_t step, int threads,
                             const std::optional<BlockShuffle>& blocks) {
  require_can_show(dataset, rules);
  const std::int64_t samples = dataset.samples();
  require(samples >= share.global_batch, Failure::usage,
          "the training set has {} samples, fewer than the global batch of {}. No step would ever be complete. Choose "
          "a smaller global batch.",
          samples, share.global_batch);
  const std::int64_t first_step = epoch * (samples / share.global_batch) + step;
  // Each thread is working on one micro-batch, so read-ahead requests concern later ones.
  const int steps_ahead = (threads + share.micro_batches - 1) / share.micro_batches;
  return {&dataset, rules, make_training_sampler(samples, share, rules, seed, first_step, blocks, steps_ahead),
          share.micro_batch_size(), threads};
}

LoaderSource evaluation_source(const Dataset& dataset, const ImageRules& rules, std::int64_t batch, int rank, int ranks,
                               int threads) {
  require_can_show(dataset, rules);
  return {&dataset, rules, make_evaluation_sampler(dataset.samples(), rules, batch, rank, ranks, threads), batch,
          threads};
}

SampleShape image_shape(const LoaderSource& source) {
  return {source.rules.size.height, source.rules.size.width, source.dataset->manifest().shape.channels};
}

std::unique_ptr<Loader> make_host_loader(const LoaderSource& source) { return std::make_unique<HostLoader>(source); }

}  // namespace lockstep
