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
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/cpu/cpu_device.hpp"
#include "machine/fma_peak.hpp"
#include "nn/conv_norm_act.hpp"
#include "nn/initialize.hpp"
#include "nn/linear.hpp"
#include "nn/pooling.hpp"
#include "nn/residual.hpp"
#include "nn/sequential.hpp"

namespace lockstep {
namespace {

// Counts the multiply-adds of one sample in forward.
class WorkCounter final : public GraphWriter {
 public:
  GraphValue input(std::int64_t side, std::int64_t channels) { return value(side, channels); }
  double multiply_adds() const { return multiply_adds_; }

  GraphValue convolution(const GraphValue& x, const Conv2d& conv, const Parameter&, const Parameter*) override {
    const std::int64_t out = conv.out_size(side_of(x));
    multiply_adds_ += static_cast<double>(out * out * conv.kernel * conv.kernel * conv.in_channels * conv.out_channels);
    return value(out, conv.out_channels);
  }
  GraphValue linear(const GraphValue&, const Parameter& weight, const Parameter&) override {
    multiply_adds_ += static_cast<double>(weight.count());
    return value(1, weight.dims.front());
  }
  GraphValue norm(const GraphValue& x, const Parameter&, const Parameter&, const Statistic&,
                  const Statistic&) override {
    return x;
  }
  GraphValue activation(const GraphValue& x, Activation) override { return x; }
  GraphValue add(const GraphValue& a, const GraphValue&) override { return a; }
  GraphValue max_pool(const GraphValue& x, const Pool2d& pool) override {
    return value(pool.out_size(side_of(x)), x.channels);
  }
  GraphValue blur(const GraphValue& x, std::int64_t stride) override { return strided(x, stride, x.channels); }
  GraphValue mean_pool(const GraphValue& x) override { return value(1, x.channels); }
  GraphValue subsample(const GraphValue& x, std::int64_t stride, std::int64_t channels) override {
    return strided(x, stride, channels);
  }
  GraphValue flatten(const GraphValue& x) override { return value(1, x.channels * side_of(x) * side_of(x)); }

 private:
  std::int64_t side_of(const GraphValue& x) const { return sides_.at(x.name); }
  GraphValue value(std::int64_t side, std::int64_t channels) {
    GraphValue made{std::to_string(sides_.size()), channels};
    sides_[made.name] = side;
    return made;
  }
  GraphValue strided(const GraphValue& x, std::int64_t stride, std::int64_t channels) {
    return value((side_of(x) + stride - 1) / stride, channels);
  }

  std::map<std::string, std::int64_t> sides_;
  double multiply_adds_ = 0;
};

using Make = std::function<std::unique_ptr<Layer>(const LayerContext&)>;

// A layer, with the input that it has in its network.
struct Case {
  std::string name;
  Shape x;
  Layout layout;
  Make make;
};

std::unique_ptr<ConvNormAct> unit(const LayerContext& context, const std::string& name, const Conv2d& conv,
                                  Activation activation = Activation::relu) {
  return std::make_unique<ConvNormAct>(context, name, name + ".norm", conv, ConvolutionOptions{}, activation);
}

Make conv_norm_relu(const Conv2d& conv) {
  return [=](const LayerContext& context) { return unit(context, "conv", conv); };
}

enum class Shortcut { identity, projection, subsample };

// `convs`: the convolutions of the main branch, in order.
Make block(const std::vector<Conv2d>& convs, Shortcut kind) {
  return [=](const LayerContext& context) {
    const std::int64_t in = convs.front().in_channels;
    const std::int64_t out = convs.back().out_channels;
    std::int64_t stride = 1;
    for (const Conv2d& conv : convs) stride *= conv.stride;
    std::unique_ptr<Layer> shortcut;
    if (kind == Shortcut::projection) shortcut = unit(context, "shortcut", {in, out, 1, stride, 0}, Activation::none);
    if (kind == Shortcut::subsample) shortcut = std::make_unique<Subsample>(context, stride, out);
    auto main = std::make_unique<Sequential>();
    for (std::size_t i = 0; i + 1 < convs.size(); ++i) main->add(unit(context, fmt::format("conv{}", i), convs[i]));
    auto last = unit(context, "last", convs.back());
    return std::make_unique<Residual>(context, std::move(shortcut), std::move(main), std::move(last));
  };
}

Make basic_block(std::int64_t in, std::int64_t out, std::int64_t stride, Shortcut shortcut) {
  return block({{in, out, 3, stride, 1}, {out, out, 3, 1, 1}}, shortcut);
}

Make bottleneck(std::int64_t in, std::int64_t width, std::int64_t stride, Shortcut shortcut) {
  return block({{in, width, 1, 1, 0}, {width, width, 3, stride, 1}, {width, 4 * width, 1, 1, 0}}, shortcut);
}

Make max_pool() {
  return [](const LayerContext& context) {
    return std::make_unique<MaxPool>(context, Pool2d{.kernel = 3, .stride = 2, .padding = 1});
  };
}

Make mean_pool() {
  return [](const LayerContext& context) { return std::make_unique<GlobalMeanPool>(context); };
}

Make linear(std::int64_t in, std::int64_t out) {
  return [=](const LayerContext& context) { return std::make_unique<Linear>(context, "fc", in, out); };
}

// ResNet-18 (CIFAR) at batch 64, ResNet-20 at 128, ResNet-50 (224 pixels) at 16.
std::vector<Case> cases() {
  return {
      {"resnet18/stem", {64, 32, 32, 3}, Layout::images, conv_norm_relu({3, 64, 3, 1, 1})},
      {"resnet18/conv_norm_relu", {64, 8, 8, 256}, Layout::features, conv_norm_relu({256, 256, 3, 1, 1})},
      {"resnet18/basic_block", {64, 32, 32, 64}, Layout::features, basic_block(64, 64, 1, Shortcut::identity)},
      {"resnet18/basic_block_halving",
       {64, 16, 16, 128},
       Layout::features,
       basic_block(128, 256, 2, Shortcut::projection)},
      {"resnet20/conv_norm_relu", {128, 32, 32, 16}, Layout::features, conv_norm_relu({16, 16, 3, 1, 1})},
      {"resnet20/basic_block", {128, 16, 16, 32}, Layout::features, basic_block(32, 32, 1, Shortcut::identity)},
      {"resnet20/basic_block_halving",
       {128, 16, 16, 32},
       Layout::features,
       basic_block(32, 64, 2, Shortcut::subsample)},
      {"resnet50/stem", {16, 224, 224, 3}, Layout::images, conv_norm_relu({3, 64, 7, 2, 3})},
      {"resnet50/max_pool", {16, 112, 112, 64}, Layout::features, max_pool()},
      {"resnet50/bottleneck", {16, 56, 56, 256}, Layout::features, bottleneck(256, 64, 1, Shortcut::identity)},
      {"resnet50/bottleneck_halving",
       {16, 28, 28, 512},
       Layout::features,
       bottleneck(512, 256, 2, Shortcut::projection)},
      {"resnet50/mean_pool", {16, 7, 7, 2048}, Layout::features, mean_pool()},
      {"resnet50/linear", {16, 2048}, Layout::plain, linear(2048, 1000)},
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
    layer_ = bench.make({*device_, store_, statistics_});
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
    WorkCounter counter;
    layer_->write(counter, counter.input(bench.x[1], bench.x[bench.x.ndim - 1]));
    flops_ = 2 * counter.multiply_adds() * static_cast<double>(bench.x[0]);
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
  std::unique_ptr<Layer> layer_;
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
