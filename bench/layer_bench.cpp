// Benchmarks whole layers, forward and backward, including norms and activations: GFLOP/s, and the share of the cores'
// measured peak.
//
//   layer_bench                                  layers and blocks as ResNet-18, ResNet-20 and ResNet-50 use them
//   layer_bench --benchmark_filter=f32.*threads:2
//
// GFLOP_per_second counts each multiply-add of convolutions and matrix products as two operations: once in forward, and
// twice in backward (for the input's gradient and the weights' gradient), whatever the kernel does. of_peak is that
// rate divided by the peak of as many threads with fp32 multiply-adds on registers. Pooling has no multiply-adds: its
// GB_per_second counts input and output once.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/cpu/cpu_device.hpp"
#include "machine/fma_peak.hpp"
#include "network/build.hpp"
#include "network/cost.hpp"
#include "nn/fused_network.hpp"
#include "nn/initialize.hpp"

namespace lockstep {
namespace {

using namespace build;

// From a layer's input to its output.
using Describe = std::function<Value(Value)>;

// A layer or block, with the input that it has in its network.
struct Case {
  std::string name;
  Shape x;
  Layout layout;
  Describe describe;
};

Value unit(Value x, const std::string& name, const ConvOptions& options) {
  return batch_norm(conv(x, name, options), name + ".norm");
}

Describe conv_norm_relu(const ConvOptions& options) {
  return [=](Value x) { return relu(unit(x, "conv", options)); };
}

enum class Shortcut { identity, projection, subsample };

// `convs`: the convolutions of the main branch, in order.
Describe block(const std::vector<ConvOptions>& convs, Shortcut kind) {
  return [=](Value x) {
    const std::int64_t out = convs.back().out;
    std::int64_t stride = 1;
    for (const ConvOptions& one : convs) stride *= one.stride.height;
    Value shortcut = x;
    if (kind == Shortcut::projection) shortcut = unit(x, "shortcut", {.out = out, .kernel = 1, .stride = stride});
    if (kind == Shortcut::subsample) shortcut = subsample(x, stride, out);
    for (std::size_t i = 0; i + 1 < convs.size(); ++i) x = relu(unit(x, fmt::format("conv{}", i), convs[i]));
    return relu(add(unit(x, "last", convs.back()), shortcut));
  };
}

Describe basic_block(std::int64_t out, std::int64_t stride, Shortcut shortcut) {
  return block({{.out = out, .kernel = 3, .stride = stride, .padding = 1}, {.out = out, .kernel = 3, .padding = 1}},
               shortcut);
}

Describe bottleneck(std::int64_t width, std::int64_t stride, Shortcut shortcut) {
  return block({{.out = width, .kernel = 1},
                {.out = width, .kernel = 3, .stride = stride, .padding = 1},
                {.out = 4 * width, .kernel = 1}},
               shortcut);
}

// ResNet-18 (CIFAR) at batch 64, ResNet-20 at 128, ResNet-50 (224 pixels) at 16, InceptionV3 (299 pixels) at 32.
std::vector<Case> cases() {
  const Layout images = Layout::images, maps = Layout::features;
  const ConvOptions stem_3x3{.out = 64, .kernel = 3, .padding = 1};
  const ConvOptions stem_7x7{.out = 64, .kernel = 7, .stride = 2, .padding = 3};
  return {
      {"resnet18/stem", {64, 32, 32, 3}, images, conv_norm_relu(stem_3x3)},
      {"resnet18/conv_norm_relu", {64, 8, 8, 256}, maps, conv_norm_relu({.out = 256, .kernel = 3, .padding = 1})},
      {"resnet18/basic_block", {64, 32, 32, 64}, maps, basic_block(64, 1, Shortcut::identity)},
      {"resnet18/basic_block_halving", {64, 16, 16, 128}, maps, basic_block(256, 2, Shortcut::projection)},
      {"resnet20/conv_norm_relu", {128, 32, 32, 16}, maps, conv_norm_relu({.out = 16, .kernel = 3, .padding = 1})},
      {"resnet20/basic_block", {128, 16, 16, 32}, maps, basic_block(32, 1, Shortcut::identity)},
      {"resnet20/basic_block_halving", {128, 16, 16, 32}, maps, basic_block(64, 2, Shortcut::subsample)},
      {"resnet50/stem", {16, 224, 224, 3}, images, conv_norm_relu(stem_7x7)},
      {"resnet50/max_pool",
       {16, 112, 112, 64},
       maps,
       [](Value x) {
         return max_pool(x, {3, 2, 1});
       }},
      {"resnet50/bottleneck", {16, 56, 56, 256}, maps, bottleneck(64, 1, Shortcut::identity)},
      {"resnet50/bottleneck_halving", {16, 28, 28, 512}, maps, bottleneck(256, 2, Shortcut::projection)},
      {"resnet50/mean_pool", {16, 7, 7, 2048}, maps, global_mean_pool},
      {"inception_v3/conv_1x7",
       {32, 17, 17, 192},
       maps,
       conv_norm_relu({.out = 192, .kernel = {1, 7}, .padding = {0, 3}})},
      {"resnet50/linear", {16, 2048}, Layout::plain, [](Value x) { return linear(x, "fc", 1000); }},
  };
}

// Gradients are overwritten, as for a step's first micro-batch.
class FirstMicroBatch final : public GradientSink {
 public:
  Accumulate accumulate() const override { return Accumulate::overwrite; }
  void ready(const Parameter&) override {}
};

// A layer and its input, on a device of its own.
class Bench {
 public:
  Bench(const Case& bench, DType precision, int threads)
      : device_(cpu::open_cpu_device({.threads = threads, .precision = precision})), store_(*device_) {
    NetworkGraph graph(sample_shape(bench.x));
    bench.describe(input(graph));
    layer_ = std::make_unique<FusedNetwork>(graph, LayerContext{*device_, store_, statistics_});
    if (!store_.parameters().empty()) {
      store_.allocate(device_->make_persistent(store_.gradient_buffer_count(), DType::f32));
      initialize(store_, 0);
    }
    reads_images_ = bench.layout == Layout::images;
    x_ = pattern(bench.x, bench.layout == Layout::features ? precision : DType::f32, bench.layout);
    const Tensor y = layer_->forward(x_, Mode::train);
    given_ = pattern(y.shape(), y.dtype(), y.layout());
    dy_ = device_->make(y.shape(), y.dtype(), y.layout());
    map_bytes_ = static_cast<double>(x_.bytes() + y.bytes());
    flops_ = 2 * multiply_adds(graph) * static_cast<double>(bench.x[0]);
  }

  void forward() { layer_->forward(x_, Mode::train); }
  void backward() { layer_->backward(dy_, sink_); }
  // Backward overwrites the output gradient and consumes what forward has stored.
  void prepare_backward() {
    forward();
    std::memcpy(dy_.data(), given_.data(), static_cast<std::size_t>(dy_.bytes()));
  }
  double forward_flops() const { return flops_; }
  double backward_flops() const { return reads_images_ ? flops_ : 2 * flops_; }
  double map_bytes() const { return map_bytes_; }

 private:
  // Not all zero: processors run faster on zeros.
  Tensor pattern(const Shape& shape, DType dtype, Layout layout) {
    std::vector<float> values(static_cast<std::size_t>(shape.count()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 37 % 201) / 100 - 1;
    const Tensor tensor = device_->make(shape, dtype, layout);
    device_->write(values, tensor);
    return tensor;
  }

  std::unique_ptr<Device> device_;
  StatisticsShare statistics_;
  ParameterStore store_;
  std::unique_ptr<FusedNetwork> layer_;
  FirstMicroBatch sink_;
  bool reads_images_ = false;
  Tensor x_, given_, dy_;
  double map_bytes_ = 0;
  double flops_ = 0;
};

template <typename Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

enum class Pass { forward, backward };

void run_layer(benchmark::State& state, const Case& layer, Pass pass, DType precision, int threads, double peak) {
  Bench bench(layer, precision, threads);
  bench.prepare_backward();  // the first pass touches new memory
  bench.backward();
  double best = std::numeric_limits<double>::infinity();  // other work on the machine can only lengthen it
  for (auto _ : state) {
    double seconds = 0;
    if (pass == Pass::forward) {
      seconds = seconds_of([&] { bench.forward(); });
    } else {
      bench.prepare_backward();
      seconds = seconds_of([&] { bench.backward(); });
    }
    best = std::min(best, seconds);
    state.SetIterationTime(seconds);
  }
  const double gflop = 1e-9 * (pass == Pass::forward ? bench.forward_flops() : bench.backward_flops());
  if (gflop == 0) {
    state.counters["GB_per_second"] = 1e-9 * bench.map_bytes() / best;
    return;
  }
  state.counters["GFLOP_per_second"] = gflop / best;
  state.counters["of_peak"] = gflop / best / peak;
}

void register_layers(int threads) {
  for (const DType precision : {DType::f32, DType::bf16}) {
    const double peak = fma_peak(cpu::widest_instruction_set(), threads, precision);
    for (const Case& layer : cases()) {
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        const std::string name =
            fmt::format("{}/{}/{}/threads:{}", layer.name, precision == DType::bf16 ? "bf16" : "f32",
                        pass == Pass::forward ? "forward" : "backward", threads);
        benchmark::RegisterBenchmark(name.c_str(), run_layer, layer, pass, precision, threads, peak)
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  for (const int threads : {1, 2}) lockstep::register_layers(threads);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
