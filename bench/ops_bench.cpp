// Benchmarks the memory passes over feature maps, relative to a copy of the same memory in the same run.
//
//   ops_bench                              every pass, on the maps of ResNet-18 and ResNet-20
//   ops_bench --benchmark_filter=norm
//   ops_bench --device cuda                on the maps of ResNet-18 and ResNet-50, with the GPU's own kernels
//   ops_bench --device cuda --batch 4      on smaller maps
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
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text/number.hpp"
#include "device/cpu/threads/parallel.hpp"

namespace lockstep {
namespace {

// Where and on what the passes run.
struct Place {
  DeviceOptions device;
  std::int64_t iterations;
  int runs;  // per iteration: work on a GPU takes about as long as waiting for it
  std::vector<Shape> shapes;
};

// Seconds that `work` takes, mean over `runs`. Other work on the machine can only lengthen it, so callers use the
// minimum of several calls.
template <typename Work>
double seconds_of(Device& device, int runs, const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  for (int run = 0; run < runs; ++run) work();
  device.synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / runs;
}

void copy_on_host(const Tensor& from, const Tensor& to, int threads) {
  constexpr int pieces = 64;
  const std::int64_t piece = from.bytes() / pieces;
  cpu::parallel_for(threads, pieces, [&](std::int64_t i) {
    std::memcpy(to.data() + i * piece, from.data() + i * piece, static_cast<std::size_t>(piece));
  });
}

// A device and the operands of one pass.
struct Operands {
  Operands(const Shape& of, const DeviceOptions& options)
      : backend(open_backend(options)), device(&backend->device()), shape(of) {
    for (Tensor* tensor : {&x, &y, &dy, &dx, &residual}) *tensor = map(shape);
    for (Tensor* tensor : {&scale, &shift, &mean, &deviation, &slot, &other_slot}) {
      *tensor = device->make(Shape{shape[3]}, DType::f32, Layout::plain);
      device->write(std::vector<float>(static_cast<std::size_t>(shape[3]), 0.5F), *tensor);
    }
    const std::int64_t mask_bytes = device->ops().relu_mask_bytes(shape);
    if (mask_bytes > 0) relu_mask = device->make(Shape{mask_bytes}, DType::u8, Layout::plain);
  }
  Tensor map(const Shape& size, DType dtype) {
    const Tensor tensor = device->make(size, dtype, Layout::features);
    device->write(std::vector<float>(static_cast<std::size_t>(size.count()), 1.0F), tensor);
    return tensor;
  }
  Tensor map(const Shape& size) { return map(size, device->precision()); }

  std::unique_ptr<Backend> backend;
  Device* device;
  Shape shape;
  Tensor x, y, dy, dx, residual, relu_mask;
  Tensor scale, shift, mean, deviation, slot, other_slot;
};

struct Pass {
  std::string name;
  double maps;  // feature maps read and written, each counted once
  std::function<void(Operands&)> run;
};

// As layers pass it: only after a residual addition.
Tensor mask(const Operands& o, const Tensor& residual) { return residual ? o.relu_mask : Tensor(); }

std::vector<Pass> passes() {
  const auto forward = [](Operands& o, const Tensor& residual) {
    o.device->ops().norm_forward(
        o.x, Tensor(),
        {{o.scale, o.shift}, {o.mean, o.deviation, mask(o, residual)}, o.slot, o.other_slot, 1, Accumulate::overwrite},
        residual, Activation::relu, o.y);
  };
  const auto backward = [](Operands& o, const Tensor& d_residual) {
    o.device->ops().norm_backward({o.x}, o.y, o.dy, {o.scale, o.shift}, Activation::relu,
                                  {o.mean, o.deviation, mask(o, d_residual)}, o.dx, d_residual, o.slot, o.other_slot,
                                  Accumulate::overwrite);
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
      {"copy", 2, [](Operands& o) { o.device->ops().copy(o.dy, o.x); }},
  };
}

void run_pass(benchmark::State& state, const Pass& pass, const Shape& shape, const Place& place) {
  Operands operands(shape, place.device);
  Device& device = *operands.device;
  const auto copy = [&] {
    if (place.device.name == "cpu") {
      copy_on_host(operands.dy, operands.x, place.device.threads);
    } else {
      device.ops().copy(operands.dy, operands.x);
    }
  };
  double pass_seconds = std::numeric_limits<double>::infinity();
  double copy_seconds = pass_seconds;
  pass.run(operands);  // a GPU loads kernels when they first run
  for (auto _ : state) {
    copy_seconds = std::min(copy_seconds, seconds_of(device, place.runs, copy));
    const double seconds = seconds_of(device, place.runs, [&] { pass.run(operands); });
    pass_seconds = std::min(pass_seconds, seconds);
    state.SetIterationTime(seconds);
  }
  const auto map_bytes = static_cast<double>(operands.x.bytes());
  state.counters["GB_per_second"] = pass.maps * map_bytes / pass_seconds / 1e9;
  state.counters["of_copy"] = pass.maps / pass_seconds / (2 / copy_seconds);
}

void register_passes(const Place& place, const std::string& suffix) {
  for (const DType precision : {DType::f32, DType::bf16}) {
    Place own = place;
    own.device.precision = precision;
    for (const Pass& pass : passes()) {
      for (const Shape& shape : place.shapes) {
        const std::string name =
            fmt::format("{}/{}/{}x{}x{}x{}{}", pass.name, precision == DType::bf16 ? "bf16" : "f32", shape[0], shape[1],
                        shape[2], shape[3], suffix);
        benchmark::RegisterBenchmark(name.c_str(), run_pass, pass, shape, own)
            ->UseManualTime()
            ->Unit(benchmark::kMicrosecond)
            ->Iterations(place.iterations);
      }
    }
  }
}

// The first and third stage of ResNet-18 at batch 64 and of ResNet-20 at batch 128, and a map of 31 x 31 pixels, as
// after a convolution without padding.
Place on_cpu(int threads) {
  return {{.name = "cpu", .threads = threads},
          40,
          1,
          {{64, 32, 32, 64}, {64, 8, 8, 256}, {128, 32, 32, 16}, {128, 8, 8, 64}, {64, 31, 31, 64}}};
}

// The first stage of ResNet-18 at batch 512, and the first and third of ResNet-50 at batch 256.
Place on_gpu(std::optional<std::int64_t> batch) {
  return {{.name = "cuda"},
          5,
          20,
          {{batch.value_or(512), 32, 32, 64}, {batch.value_or(256), 56, 56, 256}, {batch.value_or(256), 14, 14, 1024}}};
}

// What follows `--device cuda`.
std::optional<std::int64_t> batch_in(int argc, char** argv) {
  if (argc <= 4 || std::string_view(argv[3]) != "--batch") return std::nullopt;
  return parse_number<std::int64_t>(argv[4], {1, 1024});
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  using namespace lockstep;
  try {
    if (argc > 2 && std::string_view(argv[1]) == "--device" && std::string_view(argv[2]) == "cuda") {
      const std::optional<std::int64_t> batch = batch_in(argc, argv);
      register_passes(on_gpu(batch), "");
      const int own = batch ? 4 : 2;
      argv[own] = argv[0];
      argv += own;
      argc -= own;
    } else {
      for (const int threads : {1, 2}) register_passes(on_cpu(threads), fmt::format("/threads:{}", threads));
    }
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
  } catch (const Error& error) {
    log::plain(error.what());
    return error.exit_code();
  }
}
