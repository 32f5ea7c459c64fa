// Benchmarks the training state: optimizer updates and checkpoints.
//
//   state_bench                                     on ResNet-18's weights (muon also on airbench's), with one and two
//                                                   threads
//   state_bench --benchmark_filter=checkpoint
//
// bytes_per_second of an update counts each array that it must read or write once. For a checkpoint, it counts the
// bytes of its file, in the page cache.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/io/file.hpp"
#include "device/cpu/cpu_device.hpp"
#include "files/checkpoint/checkpoint.hpp"
#include "nn/initialize.hpp"
#include "step/model.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep {
namespace {

const ModelOptions resnet18{"resnet18", {224, 224, 3}, 1000};
const ModelOptions airbench{"airbench", {32, 32, 3}, 10};

// A model with gradients and an optimizer.
class Trained {
 public:
  Trained(int threads, const OptimizerOptions& options, const ModelOptions& model = resnet18)
      : device_(cpu::open_cpu_device({.threads = threads})),
        model_(*device_, model),
        record_(*device_, ParameterStore::metric_slot_count) {
    model_.store.allocate(device_->make_persistent(model_.store.gradient_buffer_count(), DType::f32));
    initialize(model_.store, 0);
    optimizer_ = make_optimizer(model_.store, options);
    device_->flat().set(record_.at(step_learning_rate), 1e-3F);
  }

  void step() { optimizer_->step(record_); }
  std::int64_t array_bytes() const { return model_.store.values().bytes(); }
  std::size_t states() const { return optimizer_->state().size(); }
  Checkpoint checkpoint() const {
    Checkpoint checkpoint;
    checkpoint.model.model = "resnet18";
    checkpoint.model.shape = {224, 224, 3};
    checkpoint.model.mean = checkpoint.model.deviation = {0.5F, 0.5F, 0.5F};
    checkpoint.model.classes.assign(1000, "a class");
    checkpoint.model.entries = model_.store.entries();
    checkpoint.optimizer = state_of(model_.store, *optimizer_);
    checkpoint.state.recipe = nlohmann::json::object();
    return checkpoint;
  }

 private:
  std::unique_ptr<Device> device_;
  Model model_;
  StepRecord record_;
  std::unique_ptr<Optimizer> optimizer_;
};

void update(benchmark::State& state, const OptimizerOptions& options, const ModelOptions& model, int threads) {
  Trained trained(threads, options, model);
  for (auto _ : state) trained.step();
  const auto arrays = static_cast<std::int64_t>(3 + 2 * trained.states());  // weights twice, gradients, states twice
  state.SetBytesProcessed(state.iterations() * arrays * trained.array_bytes());
}

void checkpoint_write(benchmark::State& state) {
  const Checkpoint checkpoint = Trained(1, OptimizerOptions{}).checkpoint();
  const TemporaryFolder folder;
  std::size_t bytes = 0;
  for (auto _ : state) {
    const std::vector<std::byte> image = checkpoint_image(checkpoint);
    write_file_atomically(folder.path() / "checkpoint.h5", image);
    bytes = image.size();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

void checkpoint_read(benchmark::State& state) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "checkpoint.h5";
  const std::vector<std::byte> image = checkpoint_image(Trained(1, OptimizerOptions{}).checkpoint());
  write_file_atomically(file, image);
  for (auto _ : state) {
    Checkpoint checkpoint = read_checkpoint(file);
    benchmark::DoNotOptimize(checkpoint);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(image.size()));
}

void register_updates() {
  for (const int threads : {1, 2}) {
    const auto add = [&](const char* name, const OptimizerOptions& options, const ModelOptions& model = resnet18) {
      const std::string full = fmt::format("update/{}/threads:{}", name, threads);
      benchmark::RegisterBenchmark(full.c_str(), update, options, model, threads)
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
    };
    add("sgd", {});
    add("lars", {.kind = OptimizerKind::lars});
    add("adamw", {.kind = OptimizerKind::adamw});
    add("muon", {.kind = OptimizerKind::muon});
    add("muon_airbench", {.kind = OptimizerKind::muon}, airbench);
  }
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  lockstep::register_updates();
  benchmark::RegisterBenchmark("checkpoint/write", lockstep::checkpoint_write)
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("checkpoint/read", lockstep::checkpoint_read)
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
