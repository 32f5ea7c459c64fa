#include "train/prediction/predictor.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "picture/picture_fault.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {
namespace {

constexpr std::size_t file_limit_bytes = std::size_t{1} << 28;
// Batch size of a forward pass. It depends only on the number of files, so results do not depend on the number of
// ranks.
constexpr std::size_t max_pictures = 32;

}  // namespace

Predictor::Predictor(const Communicator& world, Model& model, const PicturePreparation& preparation, std::int64_t top,
                     TestTimeAugmentation augmentation)
    : world_(world),
      model_(model),
      preparation_(preparation),
      top_(static_cast<std::size_t>(std::min(top, model.options.classes))),
      views_(augmentation, {model.options.sample.height, model.options.sample.width}) {}

std::vector<PicturePrediction> Predictor::predict(std::span<const std::string> files) {
  const std::size_t batch = std::clamp<std::size_t>(files.size(), 1, max_pictures);
  const auto rank = static_cast<std::size_t>(world_.rank());
  const auto ranks = static_cast<std::size_t>(world_.size());
  Found found;
  for (std::size_t first = rank * batch; first < files.size(); first += ranks * batch) {
    rank_status::enter(Phase::testing);
    predict_batch(files.subspan(first, std::min(batch, files.size() - first)), static_cast<std::int64_t>(batch), found);
  }
  rank_status::enter(Phase::gathering);
  const std::vector<std::string> likeliest = world_.all_gather(
      {reinterpret_cast<const char*>(found.likeliest.data()), found.likeliest.size() * sizeof(ClassProbability)});
  const std::vector<std::string> faults = world_.all_gather(found.faults);

  std::vector<PicturePrediction> predictions;
  std::vector<std::size_t> next(ranks);
  std::vector<std::size_t> next_fault(ranks);
  for (std::size_t file = 0; file < files.size(); ++file) {
    const std::size_t owner = file / batch % ranks;
    PicturePrediction& prediction = predictions.emplace_back();
    prediction.file = files[file];
    prediction.fault = faults[owner].c_str() + next_fault[owner];
    next_fault[owner] += prediction.fault.size() + 1;
    const std::size_t bytes = top_ * sizeof(ClassProbability);
    if (prediction.fault.empty()) {
      prediction.likeliest.resize(top_);
      likeliest[owner].copy(reinterpret_cast<char*>(prediction.likeliest.data()), bytes, next[owner]);
    }
    next[owner] += bytes;
  }
  return predictions;
}

void Predictor::predict_batch(std::span<const std::string> files, std::int64_t places, Found& found) {
  Device& device = model_.store.device();
  const SampleShape& sample = model_.options.sample;
  const Shape shape{places, sample.height, sample.width, sample.channels};
  const auto each = static_cast<std::size_t>(shape.count() / places);
  std::vector<float> images(static_cast<std::size_t>(shape.count()));
  std::vector<std::string> faults(files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    try {
      const std::string bytes = read_file(files[i], file_limit_bytes);
      preparation_.write(std::as_bytes(std::span(bytes)), std::span(images).subspan(i * each, each));
    } catch (const PictureFault& fault) {
      faults[i] = fmt::format("'{}' {}", files[i], fault.what());
    } catch (const Error& error) {  // read errors, whose message names the file
      faults[i] = error.what();
    }
  }
  const Tensor x = device.make(shape, device.image_dtype(), Layout::images);
  device.write(images, x);
  const auto classes = static_cast<std::size_t>(model_.options.classes);
  std::vector<float> logits(static_cast<std::size_t>(places) * classes);
  std::vector<float> plain(logits.size());
  views_.read(device, views_.forward(model_, x), logits, plain);
  for (std::size_t i = 0; i < files.size(); ++i) {
    found.faults += faults[i] + '\0';
    if (faults[i].empty()) {
      add_likeliest(std::span(logits).subspan(i * classes, classes), files[i], found);
    } else {
      found.likeliest.resize(found.likeliest.size() + top_);
    }
  }
}

void Predictor::add_likeliest(std::span<const float> logits, const std::string& file, Found& found) const {
  require(std::ranges::all_of(logits, [](float logit) { return std::isfinite(logit); }), Failure::bad_data,
          "the model's output for '{}' is not a finite number. Its weights come from a training that diverged. Choose "
          "another model.",
          file);
  std::vector<std::int32_t> classes(logits.size());
  std::iota(classes.begin(), classes.end(), 0);
  const auto logit = [&](std::int32_t c) { return static_cast<double>(logits[static_cast<std::size_t>(c)]); };
  std::ranges::stable_sort(classes, std::ranges::greater{}, logit);
  double sum = 0;
  for (const std::int32_t c : classes) sum += std::exp(logit(c) - logit(classes[0]));
  for (const std::int32_t c : std::span(classes).first(top_)) {
    found.likeliest.push_back({c, static_cast<float>(std::exp(logit(c) - logit(classes[0])) / sum)});
  }
}

}  // namespace lockstep
