#include "dataset/loading/picture_grid.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "dataset/loading/augmented_reader.hpp"
#include "dataset/loading/loader.hpp"
#include "dataset/loading/micro_batch_sampler.hpp"
#include "dataset/loading/normalizer.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t gap = 2;           // pixels
constexpr std::uint8_t background = 255;  // white

bool holds(const PictureBox& box, std::int64_t y, std::int64_t x) {
  return y >= box.top && y < box.top + box.size.height && x >= box.left && x < box.left + box.size.width;
}

std::vector<std::uint8_t> mean_colour(const Manifest& data) {
  std::vector<std::uint8_t> color;
  for (const float share : data.mean) {
    color.push_back(static_cast<std::uint8_t>(std::lround(std::clamp(share, 0.0F, 1.0F) * 255)));
  }
  return color;
}

// RGB, of the given size.
std::vector<std::uint8_t> image_of(const AugmentedPicture& seen, const PictureSize& size, const Manifest& data) {
  const auto& [height, width] = size;
  const std::int64_t channels = data.shape.channels;
  const std::vector<std::uint8_t> mean = mean_colour(data);
  std::vector<std::uint8_t> window(static_cast<std::size_t>(height * width * channels));
  cut_window(seen.picture, seen.augmentation, size, window);
  std::vector<std::uint8_t> image;
  for (std::int64_t i = 0; i < height * width; ++i) {
    const std::int64_t x = i % width;
    const std::int64_t from = seen.augmentation.mirrored ? i - x + width - 1 - x : i;
    const bool is_erased = holds(seen.augmentation.erased, i / width, x);
    for (std::int64_t c = 0; c < 3; ++c) {
      const std::int64_t channel = std::min(c, channels - 1);
      image.push_back(is_erased ? mean[static_cast<std::size_t>(channel)]
                                : window[static_cast<std::size_t>(from * channels + channel)]);
    }
  }
  return image;
}

// Reads training images in order, before mixup.
class ImageReader {
 public:
  ImageReader(const Dataset& dataset, const ImageRules& rules, const MicroBatchSampler& sampler)
      : dataset_(dataset), rules_(rules), sampler_(sampler), place_(sampler.place(0)), reader_(dataset, rules) {}

  std::int32_t label(std::int64_t position) const { return dataset_.label(sampler_.sample_at(place_, position)); }

  // RGB, of the size that the rules state.
  std::vector<std::uint8_t> read(std::int64_t position) {
    const std::int64_t sample = sampler_.sample_at(place_, position);
    dataset_.begin_reading(sample, 0);
    const AugmentedPicture seen =
        reader_.read(sample, sampler_.augmentation_at(place_, position, dataset_.picture_size(sample)));
    return image_of(seen, rules_.size, dataset_.manifest());
  }

 private:
  const Dataset& dataset_;
  const ImageRules& rules_;
  const MicroBatchSampler& sampler_;
  MicroBatchRange place_;
  AugmentedReader reader_;
};

void mix(std::vector<std::uint8_t>& image, const std::vector<std::uint8_t>& other, float share) {
  for (std::size_t i = 0; i < image.size(); ++i) {
    const float mixed = share * static_cast<float>(image[i]) + (1 - share) * static_cast<float>(other[i]);
    image[i] = static_cast<std::uint8_t>(std::lround(mixed));
  }
}

}  // namespace

PictureGrid picture_grid(const Dataset& dataset, const ImageRules& rules, std::uint64_t seed, std::int64_t count) {
  require_can_show(dataset, rules);
  count = std::min(count, dataset.samples());
  const auto columns = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  const std::int64_t rows = (count + columns - 1) / columns;
  const auto& [height, width] = rules.size;
  PictureGrid grid{{{}, {rows * (height + gap) - gap, columns * (width + gap) - gap}}, columns, {}, {}, {}};
  grid.picture.pixels.assign(static_cast<std::size_t>(grid.picture.size.height * grid.picture.size.width * 3),
                             background);
  const std::unique_ptr<MicroBatchSampler> sampler =
      make_training_sampler(dataset.samples(), {dataset.samples(), 1, 0, 1}, rules, seed, 0);
  ImageReader reader(dataset, rules, *sampler);
  for (std::int64_t position = 0; position < count; ++position) {
    std::vector<std::uint8_t> image = reader.read(position);
    grid.labels.push_back(reader.label(position));
    if (sampler->mixes()) {
      const MixPartner partner = sampler->partner_of(sampler->place(0), position);
      mix(image, reader.read(partner.position), partner.share);
      grid.others.push_back(reader.label(partner.position));
      grid.shares.push_back(partner.share);
    }
    const std::int64_t top = position / columns * (height + gap);
    const std::int64_t left = position % columns * (width + gap);
    for (std::int64_t y = 0; y < height; ++y) {
      std::copy_n(image.begin() + y * width * 3, width * 3,
                  grid.picture.pixels.begin() + ((top + y) * grid.picture.size.width + left) * 3);
    }
  }
  return grid;
}

OwnedPicture tested_picture(const Dataset& dataset, const ImageRules& rules, std::int64_t sample) {
  dataset.begin_reading(sample, 0);
  AugmentedReader reader(dataset, rules);
  const AugmentedPicture seen = reader.read(sample, center_crop(rules, dataset.picture_size(sample)));
  return {image_of(seen, rules.size, dataset.manifest()), rules.size};
}

}  // namespace lockstep
