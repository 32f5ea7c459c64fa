#include "train/evaluation/model_fit.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/log.hpp"

namespace lockstep {
namespace {

bool close_to(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(a, b, [](float x, float y) { return std::abs(x - y) <= 1e-4F; });
}

// Color pictures of any size can be resized to squares of any size.
bool can_be_resized(const SampleShape& image, const Manifest& data) {
  return image.channels == 3 && data.shape.channels == 3 && image.height == image.width;
}

}  // namespace

ImageRules rules_for(const ModelFile& model, const Manifest& data, ImageOptions options) {
  require(model.shape == data.shape || can_be_resized(model.shape, data), Failure::usage,
          "the model expects images of {} x {} x {}, but the data set '{}' has {} x {} x {}. Choose the data it was "
          "trained on.",
          model.shape.height, model.shape.width, model.shape.channels, data.name, data.shape.height, data.shape.width,
          data.shape.channels);
  const auto knows = [&](const std::string& name) {
    return std::ranges::find(model.classes, name) != model.classes.end();
  };
  require(model.classes == data.classes, Failure::usage,
          "the model's classes ({}) differ from those of the data set '{}' ({}). Choose {}.",
          fmt::join(model.classes, ", "), data.name, fmt::join(data.classes, ", "),
          std::ranges::all_of(data.classes, knows) ? "data with all of its classes, in the same order. For classes "
                                                     "without images, give make_shards empty folders"
                                                   : "the data it was trained on");
  if (model.shape != data.shape) options.side = model.shape.height;
  ImageRules rules = test_rules(options, data);
  // Not checked as an option: earlier versions trained models with a shorter side that is smaller than the image.
  if (!options.shorter_side && model.shorter_side.value_or(0) > 0) rules.shorter_side = model.shorter_side;
  return rules;
}

bool normalize_as_trained(Dataset& data, std::span<const float> mean, std::span<const float> deviation) {
  const Manifest& own = data.manifest();
  if (close_to(mean, own.mean) && close_to(deviation, own.deviation)) return false;
  log::info(
      "samples of '{}' are normalized like the model's training data, with mean ({:.4f}) and standard deviation "
      "({:.4f}). Their own are ({:.4f}) and ({:.4f})",
      own.name, fmt::join(mean, ", "), fmt::join(deviation, ", "), fmt::join(own.mean, ", "),
      fmt::join(own.deviation, ", "));
  data.normalize_by({mean.begin(), mean.end()}, {deviation.begin(), deviation.end()});
  return true;
}

}  // namespace lockstep
