// Pictures per second that one core prepares for a training step: decodes, crops at random, resizes, flips and
// normalizes. Prints one JSON line.
//
//   picture_bench --data data/pictures/train --size 224
//   picture_bench --data data/cifar10/train --batch 128 --threads 2       by wall clock, with that many threads
//
// Both results use CPU time. `samples_per_second` is the loader's rate. `whole_pictures_per_second` is the rate at
// which libjpeg-turbo only decodes whole pictures from the same files, at the same time. With `--threads`, only the
// loader is measured, by wall clock. Images of one size are cropped and flipped without resizing.
#include <fmt/core.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/clock.hpp"
#include "dataset/loading/augmented_reader.hpp"
#include "dataset/loading/loader.hpp"
#include "dataset/loading/sampler.hpp"
#include "launch/choice_option.hpp"
#include "launch/number_option.hpp"
#include "launch/run_outside_ranks.hpp"
#include "picture/jpeg.hpp"

namespace lockstep {
namespace {

constexpr std::array<Choice<Decoding>, 2> decodings{{{"scaled", Decoding::scaled}, {"exact", Decoding::exact}}};

struct Options {
  std::string data;
  std::int64_t size = 224;
  std::int64_t batch = 32;
  std::int64_t batches = 60;
  int threads = 0;  // of the loader; 0: one, timed by CPU time
  Decoding decoding = Decoding::scaled;
  float jitter = 0;  // of all colors; 0: none

  void declare(CLI::App& app) {
    app.description("Measures how many pictures per second a core decodes and augments.");
    app.add_option("--data", data, "Split folder made by make_shards images")->required()->type_name("FOLDER");
    add_number(app, "--size", size, {8, 4096}, "Side of the network's input")->type_name("PIXELS");
    add_number(app, "--batch", batch, {1, 65536}, "Samples per batch");
    add_number(app, "--threads", threads, {0, 4096},
               "Loader threads, measured in wall time; 0: one thread, measured in CPU time");
    add_number(app, "--batches", batches, {1, 1000000}, "Timed batches");
    add_number(app, "--color-jitter", jitter, {0.0F, 1.0F},
               "Strength of random brightness, contrast and saturation; 0: none");
    add_choice(app, "--decode", decodings, decoding,
               "JPEG decoding. scaled: at a reduced size if that is enough; exact: full size");
  }
};

double seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Mean difference between the images of both decoding modes, on a scale of 255.
double mean_difference(const Dataset& dataset, ImageRules rules, std::int64_t samples) {
  AugmentedReader scaled(dataset, rules);
  rules.decoding = Decoding::exact;
  AugmentedReader exact(dataset, rules);
  double sum = 0;
  double pixels = 0;
  for (std::int64_t sample = 0; sample < std::min(samples, dataset.samples()); ++sample) {
    const AugmentationParams view = draw_augmentation(rules, 1, {0, sample}, dataset.picture_size(sample));
    const auto one = scaled.read(sample, view);
    const auto other = exact.read(sample, view);
    for (std::size_t i = 0; i < one.size(); ++i) sum += std::abs(one[i] - other[i]);
    pixels += static_cast<double>(one.size());
  }
  return sum / pixels;
}

ImageRules rules_of(const Dataset& dataset, const Options& options) {
  const Manifest& manifest = dataset.manifest();
  if (manifest.store == SampleStore::images) {
    return {{manifest.shape.height, manifest.shape.width}, Augmentation::crop_and_flip};
  }
  ImageRules rules{{options.size, options.size}, Augmentation::resized_crop_and_flip, {}, options.decoding};
  if (options.jitter > 0) rules.transforms.jitter = {options.jitter, options.jitter, options.jitter};
  return rules;
}

std::unique_ptr<Loader> open_loader(const Dataset& dataset, const Options& options, int threads) {
  const LoaderShare all{options.batch, 1, 0, 1};
  return make_host_loader(training_source(dataset, all, rules_of(dataset, options), 1, 0, 0, threads));
}

constexpr int warm_up = 4;  // batches per thread: more than a loader holds

nlohmann::json measure_by_the_clock(const Options& options) {
  const Dataset dataset(options.data);
  const auto loader = open_loader(dataset, options, options.threads);
  for (int batch = 0; batch < warm_up * options.threads; ++batch) loader->next();
  const Stopwatch watch;
  for (std::int64_t batch = 0; batch < options.batches; ++batch) loader->next();
  return {{"samples_per_second", static_cast<double>(options.batches * options.batch) / watch.seconds()},
          {"threads", options.threads}};
}

// The loader works in a thread of its own, while this thread decodes whole pictures. The loader's CPU time is the
// process's time minus this thread's.
nlohmann::json measure(const Options& options) {
  const Dataset dataset(options.data);
  const bool is_jpeg = dataset.manifest().store == SampleStore::jpeg;
  const SampleOrder order(dataset.samples(), 1, 0);
  OwnedPicture picture;
  std::string remark;
  const auto loader = open_loader(dataset, options, 1);
  for (int batch = 0; batch < warm_up; ++batch) loader->next();
  const double process_start = seconds(CLOCK_PROCESS_CPUTIME_ID);
  const double start = seconds(CLOCK_THREAD_CPUTIME_ID);
  for (std::int64_t sample = 0; sample < options.batches * options.batch; ++sample) {
    if (sample % options.batch == 0) loader->next();
    if (is_jpeg) decode_jpeg(dataset.jpeg(order.sample_at(sample % dataset.samples())), picture, remark);
  }
  const double decoding = seconds(CLOCK_THREAD_CPUTIME_ID) - start;
  const double loading = seconds(CLOCK_PROCESS_CPUTIME_ID) - process_start - decoding;
  const auto samples = static_cast<double>(options.batches * options.batch);
  nlohmann::json result = {{"samples_per_second", samples / loading}};
  if (!is_jpeg) return result;
  result["whole_pictures_per_second"] = samples / decoding;
  if (options.decoding == Decoding::scaled) {
    result["mean_difference_from_exact"] = mean_difference(dataset, rules_of(dataset, options), 500);
  }
  return result;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  using namespace lockstep;
  return run_outside_ranks<Options>(argc, argv, [](const Options& options) {
    fmt::print("{}\n", (options.threads > 0 ? measure_by_the_clock(options) : measure(options)).dump());
    return 0;
  });
}
