#include "dataset/loading/augment.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/random.hpp"

namespace lockstep {
namespace {

using Draw = std::array<std::uint32_t, 4>;

// Of a resized crop, as in torchvision: number of attempts before the center crop is used, widest aspect ratio, and
// smallest share of the area. The largest share is 1.
constexpr int attempts = 10;
constexpr double widest = 4.0 / 3;
constexpr float usual_min_area = 0.08F;

// Indices of random draws. A plain crop uses draw 0. A resized crop uses one draw per attempt, and one for mirroring.
constexpr int colour_draw = attempts + 1;
constexpr int cutout_draw = attempts + 2;
constexpr int mixup_draw = attempts + 3;  // and the following indices

// The draw with index `number` for one sample of one epoch.
Draw draw(std::uint64_t seed, std::int64_t epoch, std::int64_t position, int number) {
  constexpr int position_bits = 48;
  return philox(seed, stream_counter(Stream::augmentation, epoch),
                static_cast<std::uint64_t>(position) | static_cast<std::uint64_t>(number) << position_bits);
}

// Rounds half to even, as in Python.
std::int32_t middle(std::int64_t picture, std::int64_t image) {
  const std::int64_t half = (picture - image) / 2;
  const bool is_between = picture > image && (picture - image) % 2 == 1;
  return static_cast<std::int32_t>(half + (is_between ? half % 2 : 0));
}

// First pixel of a window of `image` pixels: uniform over all positions inside the padded picture.
std::int32_t draw_start(std::uint32_t bits, std::int64_t picture, std::int64_t image, std::int64_t padding) {
  const std::int64_t places = picture + 2 * padding - image + 1;
  if (places < 1) return middle(picture, image);
  return static_cast<std::int32_t>(uniform(bits) * static_cast<float>(places)) - static_cast<std::int32_t>(padding);
}

std::int64_t draw_place(std::uint32_t bits, std::int64_t picture, std::int64_t part) {
  return static_cast<std::int64_t>(std::uint64_t{bits} * static_cast<std::uint64_t>(picture - part + 1) >> 32);
}

// The center crop of the picture with an aspect ratio limited to between 3 : 4 and 4 : 3.
PictureBox middle_box(const PictureSize& picture) {
  const auto at_most = [](std::int64_t side, std::int64_t other) {
    return std::clamp<std::int64_t>(std::lround(static_cast<double>(other) * widest), 1, side);
  };
  const PictureSize part{at_most(picture.height, picture.width), at_most(picture.width, picture.height)};
  return {(picture.height - part.height) / 2, (picture.width - part.width) / 2, part};
}

// Area is uniform, aspect ratio is log-uniform.
PictureBox draw_box(const ImageRules& rules, std::uint64_t seed, std::int64_t epoch, std::int64_t position,
                    const PictureSize& picture) {
  const double whole = static_cast<double>(picture.height) * static_cast<double>(picture.width);
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const Draw bits = draw(seed, epoch, position, attempt);
    const double least = rules.transforms.min_area.value_or(usual_min_area);
    const double area = whole * (least + (1 - least) * static_cast<double>(uniform(bits[0])));
    const double shape = std::exp(std::log(widest) * (2 * static_cast<double>(uniform(bits[1])) - 1));
    const PictureSize part{std::lround(std::sqrt(area / shape)), std::lround(std::sqrt(area * shape))};
    const bool fits = part.height > 0 && part.height <= picture.height && part.width > 0 && part.width <= picture.width;
    if (!fits) continue;
    return {draw_place(bits[2], picture.height, part.height), draw_place(bits[3], picture.width, part.width), part};
  }
  return middle_box(picture);
}

bool is_mirrored(const Draw& bits) { return uniform(bits[2]) < 0.5F; }

// Half of the samples in even epochs, the others in odd ones.
bool is_mirrored_in_turn(std::uint64_t seed, const SamplePlace& place) {
  const bool in_even_epochs =
      is_mirrored(philox(seed, stream_counter(Stream::mirroring, 0), static_cast<std::uint64_t>(place.sample)));
  return in_even_epochs == (place.epoch % 2 == 0);
}

ColorSteps draw_colours(const ColorJitter& jitter, const Draw& bits) {
  const auto factor = [&](std::size_t number, float strength) {
    return 1 + strength * (2 * uniform(bits[number]) - 1);
  };
  ColorSteps steps{{{ColorProperty::brightness, factor(0, jitter.brightness)},
                    {ColorProperty::contrast, factor(1, jitter.contrast)},
                    {ColorProperty::saturation, factor(2, jitter.saturation)}}};
  // A random permutation: swap the first with any of the three, then the second with itself or the third.
  const auto order = static_cast<std::size_t>(std::uint64_t{bits[3]} * 6 >> 32);
  std::swap(steps[0], steps[order / 2]);
  std::swap(steps[1], steps[1 + order % 2]);
  return steps;
}

// The part inside the image of a square around a random pixel.
PictureBox draw_cutout(std::int64_t side, const PictureSize& image, const Draw& bits) {
  const auto part = [&](std::uint32_t number, std::int64_t length) {
    const std::int64_t first = draw_place(number, length, 1) - side / 2;
    const std::int64_t begin = std::max<std::int64_t>(first, 0);
    return std::pair(begin, std::min(first + side, length) - begin);
  };
  const auto [top, height] = part(bits[0], image.height);
  const auto [left, width] = part(bits[1], image.width);
  return {top, left, {height, width}};
}

// The logarithm of a draw from Gamma(alpha, 1) (Marsaglia and Tsang 2000). Logarithms avoid underflow in fp64.
// `draw_next` returns new bits at each call.
template <typename DrawNext>
double log_of_gamma(double alpha, const DrawNext& draw_next) {
  const double raised = alpha < 1 ? alpha + 1 : alpha;
  const double d = raised - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  const auto above_zero = [](std::uint32_t bits) { return (static_cast<double>(bits) + 0.5) * 0x1p-32; };
  while (true) {
    const Draw bits = draw_next();
    const auto x = static_cast<double>(normal(bits[0], bits[1]));
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double log_cube = 3 * std::log(root);
    if (std::log(above_zero(bits[2])) >= 0.5 * x * x + d - d * std::exp(log_cube) + d * log_cube) continue;
    return std::log(d) + log_cube + (alpha < 1 ? std::log(above_zero(bits[3])) / alpha : 0);
  }
}

// The whole picture at the size from which windows are cut.
AugmentationParams full_window(const ImageRules& rules, const PictureSize& picture) {
  AugmentationParams augmentation;
  if (rules.shorter_side) {
    augmentation.resampling = {{0, 0, picture}, with_shorter_side(picture, *rules.shorter_side)};
  }
  return augmentation;
}

}  // namespace

ImageRules without_augmentation(ImageRules rules) {
  rules.augmentation = Augmentation::none;
  rules.transforms = {};
  return rules;
}

AugmentationParams center_crop(const ImageRules& rules, const PictureSize& picture) {
  AugmentationParams augmentation = full_window(rules, picture);
  const PictureSize& seen = augmentation.resampling ? augmentation.resampling->size : picture;
  augmentation.top = middle(seen.height, rules.size.height);
  augmentation.left = middle(seen.width, rules.size.width);
  return augmentation;
}

namespace {

AugmentationParams draw_window(const ImageRules& rules, std::uint64_t seed, const SamplePlace& place,
                               const PictureSize& picture) {
  const std::int64_t epoch = place.epoch;
  const std::int64_t position = place.position;
  switch (rules.augmentation) {
    case Augmentation::none:
      break;
    case Augmentation::crop:
    case Augmentation::crop_and_flip: {
      AugmentationParams augmentation = full_window(rules, picture);
      const PictureSize& seen = augmentation.resampling ? augmentation.resampling->size : picture;
      const Draw bits = draw(seed, epoch, position, 0);
      const std::int64_t padding = rules.transforms.crop_padding;
      augmentation.top = draw_start(bits[0], seen.height, rules.size.height, padding);
      augmentation.left = draw_start(bits[1], seen.width, rules.size.width, padding);
      augmentation.mirrored = rules.mirrors() && is_mirrored(bits);
      augmentation.fill = rules.transforms.crop_fill;
      return augmentation;
    }
    case Augmentation::resized_crop:
    case Augmentation::resized_crop_and_flip: {
      AugmentationParams augmentation;
      augmentation.resampling = {draw_box(rules, seed, epoch, position, picture), rules.size};
      augmentation.mirrored = rules.mirrors() && is_mirrored(draw(seed, epoch, position, attempts));
      return augmentation;
    }
  }
  return center_crop(rules, picture);
}

}  // namespace

AugmentationParams draw_augmentation(const ImageRules& rules, std::uint64_t seed, const SamplePlace& place,
                                     const PictureSize& picture) {
  AugmentationParams augmentation = draw_window(rules, seed, place, picture);
  const RandomTransforms& by = rules.transforms;
  if (rules.mirrors() && by.flip == Flip::alternating) augmentation.mirrored = is_mirrored_in_turn(seed, place);
  const std::int64_t epoch = place.epoch;
  const std::int64_t position = place.position;
  if (by.jitter) augmentation.colors = draw_colours(*by.jitter, draw(seed, epoch, position, colour_draw));
  if (by.cutout) augmentation.erased = draw_cutout(*by.cutout, rules.size, draw(seed, epoch, position, cutout_draw));
  if (by.mixup) augmentation.share = mixup_weight(*by.mixup, seed, epoch, position - position % 2);
  return augmentation;
}

float mixup_weight(float alpha, std::uint64_t seed, std::int64_t epoch, std::int64_t position) {
  int number = mixup_draw;
  const auto draw_next = [&] { return draw(seed, epoch, position, number++); };
  const double own = log_of_gamma(static_cast<double>(alpha), draw_next);
  const double other = log_of_gamma(static_cast<double>(alpha), draw_next);
  return static_cast<float>(1 / (1 + std::exp(other - own)));
}

std::int64_t mixup_partner(std::int64_t position, std::int64_t samples) {
  const std::int64_t neighbor = position ^ 1;
  return neighbor < samples ? neighbor : position;
}

}  // namespace lockstep
