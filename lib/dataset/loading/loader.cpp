#include "dataset/loading/loader.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text/printable.hpp"
#include "dataset/loading/normalizer.hpp"
#include "dataset/loading/part_ring.hpp"
#include "dataset/loading/view_reader.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {
namespace {

// Aligned memory for a part, as the CPU's first convolution reads it.
class HostPart {
 public:
  HostPart(std::int64_t places, const SampleShape& shape)
      : images_(reserve(places * shape.height * shape.width * shape.channels * size_of(DType::f32))),
        labels_(reserve(places * size_of(DType::i32))) {
    const Shape dims{places, shape.height, shape.width, shape.channels};
    const std::int64_t bytes = dims.count() * size_of(DType::f32);
    batch.images = Tensor(images_.front().bytes.data(), bytes, dims, DType::f32, Layout::images);
    batch.labels =
        Tensor(labels_.front().bytes.data(), places * size_of(DType::i32), Shape{places}, DType::i32, Layout::plain);
  }

  Batch batch;

 private:
  struct alignas(Arena::alignment) CacheLine {
    std::array<std::byte, Arena::alignment> bytes;
  };
  static std::vector<CacheLine> reserve(std::int64_t bytes) {
    return std::vector<CacheLine>(static_cast<std::size_t>((bytes + Arena::alignment - 1) / Arena::alignment));
  }

  std::vector<CacheLine> images_;
  std::vector<CacheLine> labels_;
};

class HostLoader final : public Loader {
 public:
  explicit HostLoader(const LoaderSource& source)
      : source_(source),
        normalizer_(image_shape(source), manifest().mean, manifest().deviation),
        ring_([this] { return HostPart(source_.places, image_shape(source_)); },
              [this](std::int64_t part, HostPart& memory) { fill(part, memory.batch); }, source.threads) {}

  const Batch& next() override { return ring_.next().batch; }
  double waited_ms() const override { return ring_.waited_ms(); }

 private:
  const Manifest& manifest() const { return source_.dataset->manifest(); }

  // Every place of `batch` is written: those without a sample get zeros and label -1.
  void fill(std::int64_t part, Batch& batch) const {
    const PartPlace place = source_.plan->place(part);
    const std::int64_t places = batch.labels.shape()[0];
    const auto image_count = static_cast<std::size_t>(batch.images.shape().count() / places);
    ViewReader reader(*source_.dataset, source_.rules);
    auto* image = batch.images.as<float>();
    auto* const labels = batch.labels.as<std::int32_t>();
    for (std::int64_t i = 0; i < place.samples; ++i, image += image_count) {
      const std::int64_t position = place.first + i;
      if (const auto ahead = source_.plan->needed_ahead(place, position)) {
        source_.dataset->read_ahead(ahead->first, ahead->count);
      }
      const std::int64_t sample = source_.plan->sample_at(place, position);
      source_.dataset->begin_reading(sample, place.epoch);
      const View view = source_.plan->view_at(place, position, source_.dataset->picture_size(sample));
      const SeenPicture seen = reader.read(sample, view);
      normalizer_.write(seen.picture, seen.view, {image, image_count});
      labels[i] = source_.dataset->label(sample);
    }
    rank_status::end_reading();
    std::fill(image, image + (places - place.samples) * static_cast<std::int64_t>(image_count), 0.0F);
    std::fill(labels + place.samples, labels + places, -1);
    batch.samples = place.samples;
  }

  LoaderSource source_;
  Normalizer normalizer_;
  PartRing<HostPart> ring_;  // its threads use the others
};

}  // namespace

void require_can_show(const Dataset& dataset, const ImageRules& rules) {
  const std::string name = printable(dataset.manifest().name);
  const std::int64_t channels = dataset.manifest().shape.channels;
  require(!rules.resamples() || channels == 3, Failure::usage,
          "the data set '{}' has {} channels (only pictures of 3 are resized). Leave out --image-size, "
          "--test-image-size, --resize and resized crops (--augment).",
          name, channels);
  require(!rules.jitter || channels == 3, Failure::usage,
          "the data set '{}' has {} channels (only pictures of 3 have colours). Leave out --color-jitter.", name,
          channels);
  const std::int64_t side = std::min(rules.size.height, rules.size.width);
  require(
      !rules.cutout || *rules.cutout <= side, Failure::usage,
      "--cutout {} is larger than the images of {} x {} pixels (it would leave nothing of many). Choose at most {}.",
      rules.cutout.value_or(0), rules.size.height, rules.size.width, side);
}

LoaderSource training_source(const Dataset& dataset, const LoaderShare& share, const ImageRules& rules,
                             std::uint64_t seed, std::int64_t epoch, std::int64_t step, int threads,
                             const std::optional<BlockShuffle>& blocks) {
  require_can_show(dataset, rules);
  const std::int64_t samples = dataset.samples();
  require(samples >= share.global_batch, Failure::usage,
          "the training set has {} samples but the global batch {} (no step would ever be complete). Choose a smaller "
          "global batch?",
          samples, share.global_batch);
  const std::int64_t first_step = epoch * (samples / share.global_batch) + step;
  return {&dataset, rules, make_training_plan(samples, share, rules, seed, first_step, blocks), share.part_size(),
          threads};
}

LoaderSource evaluation_source(const Dataset& dataset, const ImageRules& rules, std::int64_t batch, int rank, int ranks,
                               int threads) {
  require_can_show(dataset, rules);
  return {&dataset, rules, make_evaluation_plan(dataset.samples(), rules, batch, rank, ranks), batch, threads};
}

SampleShape image_shape(const LoaderSource& source) {
  return {source.rules.size.height, source.rules.size.width, source.dataset->manifest().shape.channels};
}

std::unique_ptr<Loader> make_host_loader(const LoaderSource& source) { return std::make_unique<HostLoader>(source); }

}  // namespace lockstep
