// Samples a second that one core reads from shards and augments, and what a loader with one thread hands out.
//
// Samples are CIFAR-sized noise in a temporary data set, in the page cache like a data set in its second epoch.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "dataset/loading/loader.hpp"
#include "dataset/loading/normalizer.hpp"
#include "dataset/loading/sampler.hpp"
#include "support/samples/small_data_set.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t samples = 20'000;  // 61 MB: more than any cache
constexpr std::int64_t part = 128;
const ImageRules rules{{32, 32}, Augmentation::crop_and_flip};

// On disk as long as the program runs.
class BenchData {
 public:
  BenchData() { write_small_data_set(directory_, {32, 32, 3}, samples, 5'000); }
  ~BenchData() { std::filesystem::remove_all(directory_); }
  BenchData(const BenchData&) = delete;
  BenchData& operator=(const BenchData&) = delete;
  const std::filesystem::path& directory() const { return directory_; }

 private:
  std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() / ("lockstep_loader_bench_" + std::to_string(getpid()));
};

enum class Order { sequential, shuffled };

void read_and_augment(benchmark::State& state, const Dataset& dataset, Order order) {
  const Manifest& manifest = dataset.manifest();
  const Normalizer normalizer(manifest.shape, manifest.mean, manifest.deviation);
  const SampleOrder shuffled(samples, 1, 0);
  std::vector<float> images(static_cast<std::size_t>(part) * 3072);
  std::int64_t position = 0;
  for (auto _ : state) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(part); ++i) {
      const std::int64_t sample = order == Order::shuffled ? shuffled.sample_at(position) : position;
      const Picture picture = dataset.picture(sample);
      const View view = choose_view(rules, 1, 0, position, picture.size);
      normalizer.write(picture, view, std::span(images).subspan(i * 3072, 3072));
      std::int32_t label = dataset.label(sample);
      benchmark::DoNotOptimize(label);
      position = (position + 1) % samples;
    }
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * part);
}

void load_parts(benchmark::State& state, const Dataset& dataset) {
  const auto loader = make_host_loader(training_source(dataset, {part, 1, 0, 1}, rules, 1, 0, 0, 1));
  for (auto _ : state) {
    std::int64_t loaded = loader->next().samples;
    benchmark::DoNotOptimize(loaded);
  }
  state.SetItemsProcessed(state.iterations() * part);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  using namespace lockstep;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const BenchData data;
  const Dataset dataset(data.directory());
  // Processor time, so that the figure is a core's whatever else runs; the loader works in a thread of its own.
  benchmark::RegisterBenchmark("read_and_augment/sequential",
                               [&](benchmark::State& s) { read_and_augment(s, dataset, Order::sequential); });
  benchmark::RegisterBenchmark("read_and_augment/shuffled",
                               [&](benchmark::State& s) { read_and_augment(s, dataset, Order::shuffled); });
  benchmark::RegisterBenchmark("loader/one_thread", [&](benchmark::State& s) {
    load_parts(s, dataset);
  })->UseRealTime();
  benchmark::RunSpecifiedBenchmarks();
}
