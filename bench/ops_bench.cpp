// Benchmarks the memory passes over feature maps, relative to a copy of the same memory in the same run.
//
//   ops_bench                              every pass, on the maps of ResNet-18 and ResNet-20
//   ops_bench --benchmark_filter=norm
//
// bytes_per_second counts the minimum that a pass reads and writes: each operand once. of_copy is that rate divided by
// the copy's rate.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "device/cpu/cpu_device.hpp"
#include "device/cpu/threads/parallel.hpp"

namespace lockstep {
namespace {

// Seconds that `work` takes. Other work on the machine can only lengthen it, so callers use the minimum of several
// runs.
template <typename Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void copy(const Tensor& from, const Tensor& to, int threads) {
  constexpr int pieces = 64;
  const std::int64_t piece = from.bytes() / pieces;
  cpu::parallel_for(threads, pieces, [&](std::int64_t i) {
    std::memcpy(to.data() + i * piece, from.data() + i * piece, static_cast<std::size_t>(piece));
  });
}

// A device and the operands of one pass.
struct Operands {
  Operands(const Shape& of, DType precision, int threads)
      : device(cpu::open_cpu_device({.threads = threads, .precision = precision})), shape(of) {
    for (Tensor* tensor : {&x, &y, &dy, &dx, &residual}) *tensor = map(shape);
    for (Tensor* tensor : {&scale, &shift, &mean, &deviation, &slot, &other_slot}) {
      *tensor = device->make(Shape{shape[3]}, DType::f32, Layout::plain);
      device->write(std::vector<float>(static_cast<std::size_t>(shape[3]), 0.5F), *tensor);
    }
  }
  Tensor map(const Shape& size, DType dtype) {
    const Tensor tensor = device->make(size, dtype, Layout::features);
    device->write(std::vector<float>(static_cast<std::size_t>(size.count()), 1.0F), tensor);
    return tensor;
  }
  Tensor map(const Shape& size) { return map(size, device->precision()); }

  std::unique_ptr<Device> device;
  Shape shape;
  Tensor x, y, dy, dx, residual;
  Tensor scale, shift, mean, deviation, slot, other_slot;
};

struct Pass {
  std::string name;
  double maps;  // feature maps read and written, each counted once
  std::function<void(Operands&)> run;
};

std::vector<Pass> passes() {
  const auto forward = [](Operands& o, const Tensor& residual) {
    o.device->ops().norm_forward(
        o.x, Tensor(), {{o.scale, o.shift}, {o.mean, o.deviation}, o.slot, o.other_slot, 1, Accumulate::overwrite},
        residual, Activation::relu, o.y);
  };
  const auto backward = [](Operands& o, const Tensor& d_residual) {
    o.device->ops().norm_backward({o.x}, o.y, o.dy, {o.scale, o.shift}, Activation::relu, {o.mean, o.deviation}, o.dx,
                                  d_residual, o.slot, o.other_slot, Accumulate::overwrite);
  };
  const auto activate = [](Curve::Kind kind) {
    return [=](Operands& o) { o.device->ops().activate_forward({.kind = kind}, o.x, o.y); };
  };
  const auto activate_backward = [](Curve::Kind kind) {
    return [=](Operands& o) { o.device->ops().activate_backward({.kind = kind}, o.y, o.dy, o.dx); };
  };
  return {
      {"norm_forward", 2, [=](Operands& o) { forward(o, Tensor()); }},
      {"norm_forward_residual", 3, [=](Operands& o) { forward(o, o.residual); }},
      {"norm_infer", 2,
       [](Operands& o) {
         o.device->ops().norm_infer(o.x, {o.scale, o.shift}, o.mean, o.deviation, Tensor(), Activation::relu, o.y);
       }},
      {"norm_backward", 3, [=](Operands& o) { backward(o, Tensor()); }},
      {"norm_backward_residual", 5, [=](Operands& o) { backward(o, o.residual); }},
      {"bias_forward", 2, [](Operands& o) { o.device->ops().bias_forward(o.x, o.shift, Activation::relu, o.y); }},
      {"bias_backward", 3,
       [](Operands& o) {
         o.device->ops().bias_backward(o.y, o.dy, Activation::relu, o.dx, o.slot, Accumulate::overwrite);
       }},
      {"relu_alone", 2, activate(Curve::Kind::relu)},
      {"relu_alone_backward", 3, activate_backward(Curve::Kind::relu)},
      {"sigmoid_alone", 2, activate(Curve::Kind::sigmoid)},
      {"gelu_alone", 2, activate(Curve::Kind::gelu)},
      {"gelu_alone_backward", 3, activate_backward(Curve::Kind::gelu)},
      {"average_pool", 2,
       [](Operands& o) {
         o.device->ops().average_pool_forward({3, 1, 1}, false, o.x, o.y);
       }},
      {"add", 3, [](Operands& o) { o.device->ops().add(o.dx, o.dy, o.dx); }},
  };
}

void run_pass(benchmark::State& state, const Pass& pass, const Shape& shape, DType precision, int threads) {
  Operands operands(shape, precision, threads);
  double pass_seconds = std::numeric_limits<double>::infinity();
  double copy_seconds = pass_seconds;
  for (auto _ : state) {
    copy_seconds = std::min(copy_seconds, seconds_of([&] { copy(operands.dy, operands.x, threads); }));
    const double seconds = seconds_of([&] { pass.run(operands); });
    pass_seconds = std::min(pass_seconds, seconds);
    state.SetIterationTime(seconds);
  }
  const auto map_bytes = static_cast<double>(operands.x.bytes());
  state.counters["GB_per_second"] = pass.maps * map_bytes / pass_seconds / 1e9;
  state.counters["of_copy"] = pass.maps / pass_seconds / (2 / copy_seconds);
}

// The first and third stage of ResNet-18 at batch 64 and of ResNet-20 at batch 128, and a map of 31 x 31 pixels, as
// after a convolution without padding.
const std::vector<Shape> shapes{
    {64, 32, 32, 64}, {64, 8, 8, 256}, {128, 32, 32, 16}, {128, 8, 8, 64}, {64, 31, 31, 64}};

void register_passes(int threads) {
  for (const DType precision : {DType::f32, DType::bf16}) {
    for (const Pass& pass : passes()) {
      for (const Shape& shape : shapes) {
        const std::string name =
            fmt::format("{}/{}/{}x{}x{}x{}/threads:{}", pass.name, precision == DType::bf16 ? "bf16" : "f32", shape[0],
                        shape[1], shape[2], shape[3], threads);
        benchmark::RegisterBenchmark(name.c_str(), run_pass, pass, shape, precision, threads)
            ->UseManualTime()
            ->Unit(benchmark::kMicrosecond)
            ->Iterations(40);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  for (const int threads : {1, 2}) lockstep::register_passes(threads);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
