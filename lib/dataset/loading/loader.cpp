#include "dataset/loading/loader.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <map>
#include <mutex>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text/counted.hpp"
#include "base/text/printable.hpp"
#include "dataset/loading/augmented_reader.hpp"
#include "dataset/loading/normalizer.hpp"
#include "dataset/loading/prefetch_ring.hpp"
#include "picture/resize.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {
namespace {

// A micro-batch in aligned memory, in the layout that the CPU's first convolution reads.
class HostMicroBatch {
 public:
  explicit HostMicroBatch(const LoaderSource& source)
      : images_(reserve(image_dims(source).count() * size_of(DType::f32))),
        labels_(reserve(source.places * size_of(DType::i32))),
        others_(reserve(source.mixes() ? source.places * size_of(DType::i32) : 0)),
        shares_(reserve(source.mixes() ? source.places * size_of(DType::f32) : 0)) {
    const Shape dims = image_dims(source);
    const std::int64_t bytes = dims.count() * size_of(DType::f32);
    batch.images = Tensor(images_.front().bytes.data(), bytes, dims, DType::f32, Layout::images);
    batch.labels = row(labels_, source.places, DType::i32);
    if (!source.mixes()) return;
    batch.others = row(others_, source.places, DType::i32);
    batch.shares = row(shares_, source.places, DType::f32);
  }

  Batch batch;

 private:
  struct alignas(Arena::alignment) CacheLine {
    std::array<std::byte, Arena::alignment> bytes;
  };
  static Shape image_dims(const LoaderSource& source) {
    const SampleShape shape = image_shape(source);
    return {source.places, shape.height, shape.width, shape.channels};
  }
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

// Sets a box of an image [c, h, w] to 0.
void erase(const PictureBox& box, const PictureSize& size, std::span<float> image) {
  for (std::int64_t row = 0; row < std::ssize(image) / size.width; ++row) {
    const std::int64_t y = row % size.height;
    if (y < box.top || y >= box.top + box.size.height) continue;
    std::fill_n(image.data() + row * size.width + box.left, box.size.width, 0.0F);
  }
}

// image = share * image + (1 - share) * other
void mix(std::span<float> image, std::span<const float> other, float share) {
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = share * image[i] + (1 - share) * other[i];
}

// The same for both images of a pair, each mixed with the unmodified other one.
void mix_both(std::span<float> image, std::span<float> other, float share) {
  for (std::size_t i = 0; i < image.size(); ++i) {
    const float value = image[i];
    const float other_value = other[i];
    image[i] = share * value + (1 - share) * other_value;
    other[i] = share * other_value + (1 - share) * value;
  }
}

class HostLoader final : public Loader {
 public:
  explicit HostLoader(const LoaderSource& source)
      : source_(source),
        normalizer_(manifest().mean, manifest().deviation),
        ring_([this] { return HostMicroBatch(source_); },
              [this](std::int64_t index, HostMicroBatch& memory) { fill(index, memory.batch); }, source.threads,
              source.on_request ? PrefetchTrigger::allowed : PrefetchTrigger::free_slot) {}

  const Batch& next() override { return ring_.next().batch; }
  void request(std::int64_t micro_batch) override {
    {
      const std::lock_guard lock(requested_mutex_);
      requested_.emplace(requests_++, micro_batch);
    }
    ring_.allow_one();
  }
  double waited_ms() const override { return ring_.waited_ms(); }

 private:
  const Manifest& manifest() const { return source_.dataset->manifest(); }
  static std::span<float> image_at(const Batch& batch, std::int64_t index) {
    const std::int64_t values = batch.images.shape().count() / batch.images.shape()[0];
    return {batch.images.as<float>() + index * values, static_cast<std::size_t>(values)};
  }

  // Of the micro-batch that the ring counts as `index`.
  MicroBatchRange place_of(std::int64_t index) {
    if (!source_.on_request) return source_.sampler->place(index);
    const std::lock_guard lock(requested_mutex_);
    return source_.sampler->place(requested_.extract(index).mapped());
  }

  // Writes every index of `batch`: those without a sample get zeros and label -1.
  void fill(std::int64_t index, Batch& batch) {
    const MicroBatchRange place = place_of(index);
    const Dataset& dataset = *source_.dataset;
    AugmentedReader reader(dataset, source_.rules);
    struct Target {
      std::int32_t label;
      float share;
    };
    const auto read = [&](std::int64_t position, std::span<float> image) -> Target {
      const std::int64_t sample = source_.sampler->sample_at(place, position);
      dataset.begin_reading(sample, place.epoch);
      const AugmentationParams augmentation = source_.draw(place.epoch, position, sample);
      normalizer_.write(reader.read(sample, augmentation), image);
      erase(augmentation.erased, source_.rules.size, image);
      return {dataset.label(sample), augmentation.share};
    };
    for (std::int64_t i = 0; i < place.samples; ++i) {
      const std::int64_t position = place.first + i;
      if (const auto ahead = source_.sampler->needed_ahead(place, position)) {
        dataset.read_ahead(ahead->first, ahead->count, place.epoch);
      }
      const Target target = read(position, image_at(batch, i));
      batch.labels.as<std::int32_t>()[i] = target.label;
      if (source_.mixes()) batch.shares.as<float>()[i] = target.share;
    }
    if (source_.mixes()) mix_images(place, batch, read);
    rank_status::end_reading();
    for (std::int64_t i = place.samples; i < source_.places; ++i) {
      std::ranges::fill(image_at(batch, i), 0.0F);
      batch.labels.as<std::int32_t>()[i] = -1;
    }
    batch.samples = place.samples;
  }

  // Partners in another micro-batch are read for this one too.
  template <typename Read>
  void mix_images(const MicroBatchRange& place, const Batch& batch, const Read& read) const {
    const auto* const labels = batch.labels.as<std::int32_t>();
    auto* const others = batch.others.as<std::int32_t>();
    const auto* const shares = batch.shares.as<float>();
    std::vector<float> outside;
    for (std::int64_t i = 0; i < place.samples; ++i) {
      const std::int64_t partner = mixup_partner(place.first + i, source_.dataset->samples());
      const std::int64_t other = partner - place.first;
      if (other >= 0 && other < place.samples) {
        others[i] = labels[other];
        if (i < other) mix_both(image_at(batch, i), image_at(batch, other), shares[i]);
      } else {
        outside.resize(image_at(batch, i).size());
        others[i] = read(partner, outside).label;
        mix(image_at(batch, i), outside, shares[i]);
      }
    }
  }

  LoaderSource source_;
  Normalizer normalizer_;
  std::mutex requested_mutex_;
  std::map<std::int64_t, std::int64_t> requested_;  // by the ring's index, until they are loaded
  std::int64_t requests_ = 0;
  PrefetchRing<HostMicroBatch> ring_;  // after the other members, because its threads use them
};

}  // namespace

AugmentationParams LoaderSource::draw(std::int64_t epoch, std::int64_t position, std::int64_t sample) const {
  AugmentationParams augmentation =
      draw_augmentation(rules, seed, {epoch, position, sample}, dataset->picture_size(sample));
  if (mixup_partner(position, dataset->samples()) == position) augmentation.share = 1;
  return augmentation;
}

void require_can_show(const Dataset& dataset, const ImageRules& rules) {
  const std::string name = printable(dataset.manifest().name);
  const std::int64_t channels = dataset.manifest().shape.channels;
  require(!rules.resamples() || channels == 3, Failure::usage,
          "the data set '{}' has {}. Only pictures of 3 channels can be resized. Leave out --image-size, "
          "--test-image-size, --resize and resized crops (--augment).",
          name, counted(channels, "channel"));
  require(!rules.transforms.jitter || channels == 3, Failure::usage,
          "the data set '{}' has {}. Only pictures of 3 channels have colors. Leave out --color-jitter.", name,
          counted(channels, "channel"));
  const std::int64_t side = std::min(rules.size.height, rules.size.width);
  const std::int64_t square = rules.transforms.cutout.value_or(0);
  require(square <= side, Failure::usage,
          "--cutout {} is larger than the images of {} x {} pixels. It would erase many images completely. Choose at "
          "most {}.",
          square, rules.size.height, rules.size.width, side);
}

namespace {

// The smallest picture that is padded. Pictures of several sizes have it only if they are resized.
std::optional<PictureSize> smallest_padded(const Manifest& data, const ImageRules& rules) {
  const std::optional<std::int64_t>& side = rules.shorter_side;
  if (data.store != SampleStore::images) return side ? std::optional(PictureSize{*side, *side}) : std::nullopt;
  const PictureSize stored{data.shape.height, data.shape.width};
  return side ? with_shorter_side(stored, *side) : stored;
}

// A reflection has one pixel less than the picture. A window must not extend beyond it.
void require_can_reflect(const Dataset& dataset, const ImageRules& rules) {
  if (!rules.crops() || rules.transforms.crop_fill != CropFill::reflect) return;
  const std::optional<PictureSize> padded = smallest_padded(dataset.manifest(), rules);
  require(padded.has_value(), Failure::usage,
          "the data set '{}' has pictures of several sizes. --crop-fill reflect needs a padding smaller than each of "
          "them. Add --resize.",
          printable(dataset.manifest().name));
  const std::int64_t padding = rules.transforms.crop_padding;
  const std::int64_t side = std::min(padded->height, padded->width);
  require(padding < side, Failure::usage,
          "--crop-padding {} is not smaller than the pictures of {} x {} pixels. --crop-fill reflect shows each of "
          "their pixels at most once on a side. Choose at most {}.",
          padding, padded->height, padded->width, side - 1);
  const bool fits =
      rules.size.height <= padded->height + 2 * padding && rules.size.width <= padded->width + 2 * padding;
  require(fits, Failure::usage,
          "images of {} x {} pixels are larger than pictures of {} x {} with --crop-padding {}. --crop-fill reflect "
          "fills the padding only. Choose a larger --resize.",
          rules.size.height, rules.size.width, padded->height, padded->width, padding);
}

}  // namespace

LoaderSource training_source(const Dataset& dataset, const LoaderShare& share, const ImageRules& rules,
                             std::uint64_t seed, std::int64_t epoch, std::int64_t step, int threads,
                             const std::optional<BlockShuffle>& blocks) {
  require_can_show(dataset, rules);
  require_can_reflect(dataset, rules);
  const std::int64_t samples = dataset.samples();
  require(samples >= share.global_batch, Failure::usage,
          "the training set has {} samples, fewer than the global batch of {}. No step would ever be complete. Choose "
          "a smaller global batch.",
          samples, share.global_batch);
  const std::int64_t first_step = epoch * (samples / share.global_batch) + step;
  // Each thread is working on one micro-batch, so read-ahead requests concern later ones.
  const int steps_ahead = (threads + share.micro_batches - 1) / share.micro_batches;
  return {&dataset,
          rules,
          seed,
          make_training_sampler(samples, share, seed, first_step, blocks, steps_ahead),
          share.micro_batch_size(),
          threads};
}

LoaderSource evaluation_source(const Dataset& dataset, const ImageRules& rules, std::int64_t batch, int rank, int ranks,
                               int threads) {
  require_can_show(dataset, rules);
  return {&dataset, without_augmentation(rules),
          0,        make_evaluation_sampler(dataset.samples(), batch, rank, ranks, threads),
          batch,    threads};
}

SampleShape image_shape(const LoaderSource& source) {
  return {source.rules.size.height, source.rules.size.width, source.dataset->manifest().shape.channels};
}

namespace {

class IdleLoader final : public Loader {
 public:
  const Batch& next() override { throw std::logic_error("a rank without samples asked for a batch"); }
  double waited_ms() const override { return 0; }
};

}  // namespace

std::unique_ptr<Loader> make_idle_loader() { return std::make_unique<IdleLoader>(); }

std::unique_ptr<Loader> make_host_loader(const LoaderSource& source) { return std::make_unique<HostLoader>(source); }

}  // namespace lockstep
