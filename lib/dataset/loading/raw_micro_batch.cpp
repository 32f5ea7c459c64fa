#include "dataset/loading/raw_micro_batch.hpp"

#include <algorithm>

#include "dataset/loading/augmented_reader.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {
namespace {

// `index`: of the sample's pixels.
cuda::SampleAugmentation gpu_augmentation(std::int64_t index, const AugmentationParams& augmentation) {
  const auto number = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  const PictureBox& erased = augmentation.erased;
  return {number(index),
          augmentation.top,
          augmentation.left,
          augmentation.mirrored ? 1 : 0,
          number(erased.top),
          number(erased.top + erased.size.height),
          number(erased.left),
          number(erased.left + erased.size.width),
          augmentation.fill == CropFill::reflect ? 1 : 0};
}

}  // namespace

bool can_be_resident(const LoaderSource& source) {
  return source.dataset->manifest().store == SampleStore::images && !source.rules.resamples() &&
         !source.rules.transforms.jitter;
}

void fill_raw_micro_batch(const LoaderSource& source, PixelSource pixels, std::int64_t micro_batch,
                          RawMicroBatch& memory) {
  const Dataset& dataset = *source.dataset;
  const MicroBatchRange place = source.sampler->place(micro_batch);
  AugmentedReader reader(dataset, source.rules);
  struct Put {
    cuda::SampleAugmentation augmentation;
    float share;
  };
  // Adds the sample at `position`. Its pixels, if they are uploaded, get index `number` in the micro-batch.
  const auto put = [&](std::int64_t position, std::int64_t number) -> Put {
    const std::int64_t sample = source.sampler->sample_at(place, position);
    const AugmentationParams augmentation = source.draw(place.epoch, position, sample);
    if (pixels == PixelSource::resident) return {gpu_augmentation(sample, augmentation), augmentation.share};
    dataset.begin_reading(sample, place.epoch);
    const auto image = reader.read(sample, augmentation);
    std::ranges::copy(image, memory.pixels.begin() + number * std::ssize(image));
    memory.labels[static_cast<std::size_t>(number)] = dataset.label(sample);
    return {gpu_augmentation(number, {.erased = augmentation.erased}), augmentation.share};
  };
  const auto augmentation_of = [&](std::int64_t i) -> cuda::SampleAugmentation& {
    return memory.augmentations[static_cast<std::size_t>(i)];
  };
  for (std::int64_t i = 0; i < place.samples; ++i) {
    const std::int64_t position = place.first + i;
    if (pixels == PixelSource::travelling) {
      if (const auto ahead = source.sampler->needed_ahead(place, position))
        dataset.read_ahead(ahead->first, ahead->count, place.epoch);
    }
    const Put own = put(position, i);
    augmentation_of(i) = own.augmentation;
    if (source.mixes()) memory.shares[static_cast<std::size_t>(i)] = own.share;
  }
  for (std::int64_t i = 0; source.mixes() && i < place.samples; ++i) {
    const std::int64_t partner = mixup_partner(place.first + i, dataset.samples());
    const std::int64_t other = partner - place.first;
    const bool is_inside = other >= 0 && other < place.samples;
    augmentation_of(source.places + i) =
        is_inside ? augmentation_of(other) : put(partner, source.places + (other < 0 ? 0 : 1)).augmentation;
  }
  rank_status::end_reading();
  std::fill(memory.augmentations.begin() + place.samples, memory.augmentations.begin() + source.places,
            cuda::SampleAugmentation{-1});
  memory.samples = place.samples;
}

void copy_pixels(const Dataset& dataset, std::int64_t first, std::int64_t count, std::uint8_t* pixels) {
  for (std::int64_t sample = first; sample < first + count; ++sample) {
    dataset.begin_reading(sample, 0);
    pixels = std::ranges::copy(dataset.picture(sample).pixels, pixels).out;
  }
  rank_status::end_reading();
}

}  // namespace lockstep
