// Benchmarks data loading. Samples per second that one core reads from shards and augments, and that a loader with one
// thread delivers, for each storage format of shards. The formats are images of one size (CIFAR-sized noise), and
// pictures with sides of at least 256 pixels as raw pixels or JPEG. Pictures are randomly cropped to 224 pixels.
//
// The data sets are temporary. They are in the page cache, as in a training's second epoch.
#include <benchmark/benchmark.h>

#include <functional>
#include <vector>

#include "dataset/loading/augmented_reader.hpp"
#include "dataset/loading/loader.hpp"
#include "dataset/loading/normalizer.hpp"
#include "dataset/loading/sampler.hpp"
#include "support/samples/small_data_set.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t samples = 20'000;  // 61 MB: more than any cache
constexpr std::int64_t micro_batch = 128;
const ImageRules rules{{32, 32}, Augmentation::crop_and_flip};
constexpr std::int64_t pictures = 192;  // 38 MB of pixels
constexpr std::int64_t picture_batch = 32;
const ImageRules picture_rules{{224, 224}, Augmentation::resized_crop_and_flip};

enum class Order { sequential, shuffled };

void read_and_augment(benchmark::State& state, const Dataset& dataset, Order order) {
  const Manifest& manifest = dataset.manifest();
  const Normalizer normalizer(manifest.mean, manifest.deviation);
  AugmentedReader reader(dataset, rules);
  const SampleOrder shuffled(samples, 1, 0);
  std::vector<float> images(static_cast<std::size_t>(micro_batch) * 3072);
  std::int64_t position = 0;
  for (auto _ : state) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(micro_batch); ++i) {
      const std::int64_t sample = order == Order::shuffled ? shuffled.sample_at(position) : position;
      const AugmentationParams view = draw_augmentation(rules, 1, {0, position}, rules.size);
      normalizer.write(reader.read(sample, view), std::span(images).subspan(i * 3072, 3072));
      std::int32_t label = dataset.label(sample);
      benchmark::DoNotOptimize(label);
      position = (position + 1) % samples;
    }
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * micro_batch);
}

void load_parts(benchmark::State& state, const Dataset& dataset, std::int64_t size, const ImageRules& shown) {
  const auto loader = make_host_loader(training_source(dataset, {size, 1, 0, 1}, shown, 1, 0, 0, 1));
  for (auto _ : state) {
    std::int64_t loaded = loader->next().samples;
    benchmark::DoNotOptimize(loaded);
  }
  state.SetItemsProcessed(state.iterations() * size);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  using namespace lockstep;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const TemporaryFolder folder;
  write_small_data_set(folder.path() / "images", {32, 32, 3}, samples, 5'000);
  for (const SampleStore store : {SampleStore::pictures, SampleStore::jpeg}) {
    write_small_data_set(folder.path() / choice_name(sample_stores, store), {256, 256, 3}, pictures, 96, store);
  }
  const Dataset images(folder.path() / "images");
  const Dataset pixels(folder.path() / "pictures");
  const Dataset jpeg(folder.path() / "jpeg");
  // CPU time, so that the result is for one core, whatever else runs. The loader works in a thread of its own.
  benchmark::RegisterBenchmark("read_and_augment/sequential", read_and_augment, std::cref(images), Order::sequential);
  benchmark::RegisterBenchmark("read_and_augment/shuffled", read_and_augment, std::cref(images), Order::shuffled);
  const auto add = [](const char* name, const Dataset& dataset, std::int64_t size, const ImageRules& shown) {
    benchmark::RegisterBenchmark(name, load_parts, std::cref(dataset), size, shown)->UseRealTime();
  };
  add("loader/images/one_thread", images, micro_batch, rules);
  add("loader/pictures/one_thread", pixels, picture_batch, picture_rules);
  add("loader/jpeg/one_thread", jpeg, picture_batch, picture_rules);
  benchmark::RunSpecifiedBenchmarks();
}
