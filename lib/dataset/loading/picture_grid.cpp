#include "dataset/loading/picture_grid.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "dataset/loading/augmented_reader.hpp"
#include "dataset/loading/loader.hpp"

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

// RGB, of an image [h, w, c].
std::vector<std::uint8_t> drawn(std::span<const std::uint8_t> image, const PictureBox& erased, std::int64_t width,
                                const Manifest& data) {
  const std::int64_t channels = data.shape.channels;
  const std::vector<std::uint8_t> mean = mean_colour(data);
  std::vector<std::uint8_t> rgb;
  for (std::int64_t pixel = 0; pixel < std::ssize(image) / channels; ++pixel) {
    const bool is_erased = holds(erased, pixel / width, pixel % width);
    for (std::int64_t c = 0; c < 3; ++c) {
      const std::int64_t channel = std::min(c, channels - 1);
      rgb.push_back(is_erased ? mean[static_cast<std::size_t>(channel)]
                              : image[static_cast<std::size_t>(pixel * channels + channel)]);
    }
  }
  return rgb;
}

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
  const LoaderSource source = training_source(dataset, {dataset.samples(), 1, 0, 1}, rules, seed, 0, 0, 1);
  const MicroBatchRange epoch = source.sampler->place(0);
  AugmentedReader reader(dataset, rules);
  struct Drawn {
    std::vector<std::uint8_t> rgb;
    std::int32_t label;
    float share;
  };
  const auto draw = [&](std::int64_t position) -> Drawn {
    const std::int64_t sample = source.sampler->sample_at(epoch, position);
    dataset.begin_reading(sample, epoch.epoch);
    const AugmentationParams augmentation = source.draw(epoch.epoch, position, sample);
    return {drawn(reader.read(sample, augmentation), augmentation.erased, rules.size.width, dataset.manifest()),
            dataset.label(sample), augmentation.share};
  };
  for (std::int64_t position = 0; position < count; ++position) {
    auto [image, label, share] = draw(position);
    grid.labels.push_back(label);
    if (source.mixes()) {
      const Drawn other = draw(mixup_partner(position, dataset.samples()));
      mix(image, other.rgb, share);
      grid.others.push_back(other.label);
      grid.shares.push_back(share);
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
  const auto image = reader.read(sample, center_crop(rules, dataset.picture_size(sample)));
  return {drawn(image, {}, rules.size.width, dataset.manifest()), rules.size};
}

}  // namespace lockstep
