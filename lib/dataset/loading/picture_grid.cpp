#include "dataset/loading/picture_grid.hpp"

#include <algorithm>
#include <cmath>

#include "dataset/loading/loader.hpp"
#include "dataset/loading/normalizer.hpp"
#include "dataset/loading/sampler.hpp"
#include "dataset/loading/view_reader.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t gap = 2;           // pixels
constexpr std::uint8_t background = 255;  // white

bool holds(const PictureBox& box, std::int64_t y, std::int64_t x) {
  return y >= box.top && y < box.top + box.size.height && x >= box.left && x < box.left + box.size.width;
}

}  // namespace

PictureGrid picture_grid(const Dataset& dataset, const ImageRules& rules, std::uint64_t seed, std::int64_t count) {
  require_can_show(dataset, rules);
  count = std::min(count, dataset.samples());
  const auto columns = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  const std::int64_t rows = (count + columns - 1) / columns;
  const auto& [height, width] = rules.size;
  PictureGrid grid{{{}, {rows * (height + gap) - gap, columns * (width + gap) - gap}}, columns, {}};
  grid.picture.pixels.assign(static_cast<std::size_t>(grid.picture.size.height * grid.picture.size.width * 3),
                             background);
  const std::int64_t channels = dataset.manifest().shape.channels;
  std::vector<std::uint8_t> image(static_cast<std::size_t>(height * width * channels));
  std::vector<std::uint8_t> mean;
  for (const float share : dataset.manifest().mean) {
    mean.push_back(static_cast<std::uint8_t>(std::lround(std::clamp(share, 0.0F, 1.0F) * 255)));
  }
  ViewReader reader(dataset, rules);
  const SampleOrder order(dataset.samples(), seed, 0);
  for (std::int64_t position = 0; position < count; ++position) {
    const std::int64_t sample = order.sample_at(position);
    dataset.begin_reading(sample, 0);
    const SeenPicture seen = reader.read(sample, choose_view(rules, seed, 0, position, dataset.picture_size(sample)));
    cut_window(seen.picture, seen.view, rules.size, image);
    grid.labels.push_back(dataset.label(sample));
    const std::int64_t top = position / columns * (height + gap);
    const std::int64_t left = position % columns * (width + gap);
    for (std::int64_t i = 0; i < height * width; ++i) {
      const std::int64_t x = seen.view.mirrored ? width - 1 - i % width : i % width;
      const std::int64_t target = ((top + i / width) * grid.picture.size.width + left + x) * 3;
      const bool is_erased = holds(seen.view.erased, i / width, x);
      for (std::int64_t c = 0; c < 3; ++c) {
        const std::int64_t channel = std::min(c, channels - 1);
        grid.picture.pixels[static_cast<std::size_t>(target + c)] =
            is_erased ? mean[static_cast<std::size_t>(channel)]
                      : image[static_cast<std::size_t>(i * channels + channel)];
      }
    }
  }
  return grid;
}

}  // namespace lockstep
