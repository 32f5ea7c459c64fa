#include "dataset/loading/raw_micro_batch.hpp"

#include <algorithm>

#include "dataset/loading/augmented_reader.hpp"
#include "dataset/loading/normalizer.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {
namespace {

cuda::SampleAugmentation gpu_augmentation(std::int64_t place, const AugmentationParams& augmentation) {
  const auto number = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  const PictureBox& erased = augmentation.erased;
  return {number(place),       augmentation.top,
          augmentation.left,   augmentation.mirrored ? 1 : 0,
          number(erased.top),  number(erased.top + erased.size.height),
          number(erased.left), number(erased.left + erased.size.width)};
}

}  // namespace

void fill_raw_micro_batch(const LoaderSource& source, PixelSource pixels, std::int64_t micro_batch,
                          RawMicroBatch& memory) {
  const Dataset& dataset = *source.dataset;
  const MicroBatchRange place = source.sampler->place(micro_batch);
  const bool mixes = source.sampler->mixes();
  const auto places = std::ssize(memory.augmentations) / (mixes ? 2 : 1);
  const std::size_t bytes_each = memory.pixels.size() / static_cast<std::size_t>(places + (mixes ? outer_partners : 0));
  AugmentedReader reader(dataset, source.rules);
  // Adds the sample at `position`. Its pixels, if they are uploaded, get index `number` in the micro-batch.
  const auto put = [&](std::int64_t position, std::int64_t number) {
    const std::int64_t sample = source.sampler->sample_at(place, position);
    AugmentationParams augmentation = source.sampler->augmentation_at(place, position, dataset.picture_size(sample));
    if (pixels == PixelSource::resident) return gpu_augmentation(sample, augmentation);
    dataset.begin_reading(sample, place.epoch);
    const auto target = memory.pixels.subspan(static_cast<std::size_t>(number) * bytes_each, bytes_each);
    const AugmentedPicture seen = reader.read(sample, augmentation);
    augmentation = seen.augmentation;
    // For a picture of the image's size the GPU cuts the window itself.
    if (seen.picture.size == source.rules.size) {
      std::ranges::copy(seen.picture.pixels, target.begin());
    } else {
      cut_window(seen.picture, seen.augmentation, source.rules.size, target);
      augmentation.top = 0;
      augmentation.left = 0;
    }
    memory.labels[static_cast<std::size_t>(number)] = dataset.label(sample);
    return gpu_augmentation(number, augmentation);
  };
  const auto view_of = [&](std::int64_t i) -> cuda::SampleAugmentation& {
    return memory.augmentations[static_cast<std::size_t>(i)];
  };
  for (std::int64_t i = 0; i < place.samples; ++i) {
    const std::int64_t position = place.first + i;
    if (pixels == PixelSource::travelling) {
      if (const auto ahead = source.sampler->needed_ahead(place, position))
        dataset.read_ahead(ahead->first, ahead->count, place.epoch);
    }
    view_of(i) = put(position, i);
  }
  for (std::int64_t i = 0; mixes && i < place.samples; ++i) {
    const MixPartner partner = source.sampler->partner_of(place, place.first + i);
    const std::int64_t other = partner.position - place.first;
    const bool is_inside = other >= 0 && other < place.samples;
    view_of(places + i) = is_inside ? view_of(other) : put(partner.position, other < 0 ? places : places + 1);
    memory.shares[static_cast<std::size_t>(i)] = partner.share;
  }
  rank_status::end_reading();
  std::fill(memory.augmentations.begin() + place.samples, memory.augmentations.begin() + places,
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
