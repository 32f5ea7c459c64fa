#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "base/error.hpp"
#include "base/random.hpp"
#include "dataset/sources/sample_source.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t side = 32;
constexpr std::int64_t channels = 3;
constexpr std::size_t pixels = side * side;
constexpr std::int64_t class_count = 10;

// Ten figures, each symmetric under mirroring. Position, size, and the assignment of two random colors to figure and
// background are drawn for each sample. So neither single pixels nor the mean color reveal the class.
constexpr std::array<const char*, class_count> figures = {"disk", "ring",  "square", "frame",   "triangle",
                                                          "plus", "cross", "rows",   "columns", "checkerboard"};

// Whether the point (x, y), relative to the center and in units of the figure's radius, is on the figure.
bool on_figure(std::int32_t figure, float x, float y) {
  const float across = std::abs(x);
  const float down = std::abs(y);
  const float longest = std::max(across, down);
  const float square_of_distance = x * x + y * y;
  const auto stripe = [](float at) { return (static_cast<int>(std::floor((at + 1) * 3)) & 1) == 0; };
  switch (figure) {
    case 0:
      return square_of_distance < 1;
    case 1:
      return square_of_distance < 1 && square_of_distance > 0.36F;
    case 2:
      return longest < 0.9F;
    case 3:
      return longest < 0.9F && longest > 0.5F;
    case 4:
      return y < 0.9F && across < (y + 0.9F) * 0.55F;
    case 5:
      return longest < 1 && std::min(across, down) < 0.25F;
    case 6:
      return longest < 0.9F && std::abs(across - down) < 0.35F;
    case 7:
      return longest < 1 && stripe(y);
    case 8:
      return longest < 1 && stripe(across);
    default:
      return longest < 1 && stripe(across) == stripe(y);
  }
}

class SyntheticSource final : public SampleSource {
 public:
  SyntheticSource(std::int64_t samples, std::uint64_t seed) : samples_(samples), seed_(seed) {
    description_ = {"synthetic",
                    fmt::format("a procedural stand-in, not real pictures: figures drawn from seed {}", seed),
                    {side, side, channels},
                    SampleKind::picture,
                    {figures.begin(), figures.end()}};
  }

  const SourceDescription& description() const override { return description_; }
  std::int64_t samples(SourceSplit split) const override {
    return split == SourceSplit::train ? samples_ : samples_ / 5;
  }

  std::optional<std::int32_t> read(SourceSplit split, std::int64_t index, SourceSample& sample) const override {
    OwnedPicture& picture = sample.picture;
    picture.size = {side, side};
    picture.pixels.resize(pixels * channels);
    const Draws draws(seed_, split, index);
    const Figure figure = draws.figure();
    for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
      const std::size_t row = pixel / side;
      const std::size_t column = pixel % side;
      const float x = (static_cast<float>(column) - figure.x) / figure.radius;
      const float y = (static_cast<float>(row) - figure.y) / figure.radius;
      const auto& color = on_figure(figure.label, x, y) ? figure.color : figure.ground;
      const auto noise = draws.at(noise_start + pixel);
      for (std::size_t channel = 0; channel < channels; ++channel) {
        const float value = color[channel] + (uniform(noise[channel]) - 0.5F) * noise_range;
        picture.pixels[pixel * channels + channel] = static_cast<std::uint8_t>(std::clamp(value, 0.0F, 255.0F));
      }
    }
    return figure.label;
  }

 private:
  static constexpr float noise_range = 64;
  static constexpr std::uint64_t noise_start = 4;  // lower counters draw the figure
  using Colour = std::array<float, channels>;

  struct Figure {
    std::int32_t label;
    float x;
    float y;
    float radius;
    Colour color;
    Colour ground;
  };

  // All random values of a sample: a pure function of (seed, split, index).
  class Draws {
   public:
    Draws(std::uint64_t seed, SourceSplit split, std::int64_t index)
        : seed_(seed),
          high_(static_cast<std::uint64_t>(Stream::synthetic) << 32 | static_cast<std::uint64_t>(split)),
          low_(static_cast<std::uint64_t>(index) << 16) {}

    std::array<std::uint32_t, 4> at(std::uint64_t number) const { return philox(seed_, high_, low_ | number); }

    Figure figure() const {
      const auto place = at(0);
      const auto first = at(1);
      const auto second = at(2);
      Figure drawn{static_cast<std::int32_t>(place[0] % class_count), 0, 0, 7 + uniform(place[1]) * 5, {}, {}};
      // Keeps the whole figure inside the picture.
      const auto middle = [&](std::uint32_t bits) {
        return drawn.radius + uniform(bits) * (side - 1 - 2 * drawn.radius);
      };
      drawn.x = middle(place[2]);
      drawn.y = middle(place[3]);
      // Which color is darker is random, so the contrast does not reveal the class.
      const float contrast = (60 + uniform(first[3]) * 60) * ((second[3] & 1) == 0 ? 1.0F : -1.0F);
      for (std::size_t channel = 0; channel < channels; ++channel) {
        const float middle_grey = 70 + uniform(first[channel]) * 115;
        const float tint = (uniform(second[channel]) - 0.5F) * 60;
        drawn.color[channel] = middle_grey + contrast / 2 + tint;
        drawn.ground[channel] = middle_grey - contrast / 2;
      }
      return drawn;
    }

   private:
    std::uint64_t seed_;
    std::uint64_t high_;
    std::uint64_t low_;
  };

  std::int64_t samples_;
  std::uint64_t seed_;
  SourceDescription description_;
};

}  // namespace

std::unique_ptr<SampleSource> make_synthetic_source(std::int64_t samples, std::uint64_t seed) {
  constexpr std::int64_t most = std::int64_t{1} << 31;
  require(samples >= 10 && samples <= most, Failure::usage,
          "{} samples cannot be generated (--samples). Choose a number from 10 to {}.", samples, most);
  return std::make_unique<SyntheticSource>(samples, seed);
}

}  // namespace lockstep
