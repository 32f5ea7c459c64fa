#include "kernel_race.hpp"

#include <omp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "device/cpu/conv/convolution_engine.hpp"
#include "device/cpu/layout/cpu_layout.hpp"
#include "device/cpu/reserved_memory.hpp"
#include "machine/process_facts.hpp"
#include "onednn/onednn_adapter.hpp"

namespace lockstep {
namespace {

struct Contestant {
  std::string name;
  std::function<void()> run;
  double seconds = std::numeric_limits<double>::infinity();
};

// Memory in large pages, as for tensors: in small pages, a kernel's speed depends on their physical location. The
// values are neither zero nor equal, because processors run faster and cooler on such values.
class Buffer {
 public:
  explicit Buffer(std::int64_t bytes) : memory_(std::max(bytes + 4, least_reserved)) {
    if (memory_.bytes() < bytes + 4) throw std::bad_alloc();
    auto* const values = reinterpret_cast<float*>(data());
    for (std::int64_t i = 0; i < bytes / 4 + 1; ++i) values[i] = static_cast<float>(i * 37 % 201) / 100 - 1;
  }
  std::byte* data() const { return memory_.data(); }

 private:
  static constexpr std::int64_t least_reserved = 64 << 20;  // bytes of address space

  cpu::ReservedMemory memory_;
};

std::int64_t input_bytes(const ConvProblem& problem, int lanes) {
  const Shape shape{problem.n, problem.h, problem.w, problem.conv.in_channels};
  const DType dtype = problem.input == Layout::images ? DType::f32 : problem.precision;
  return cpu::storage_count(shape, problem.input, lanes) * size_of(dtype);
}

std::int64_t output_bytes(const ConvProblem& problem, int lanes) {
  const Conv2d& conv = problem.conv;
  const Shape shape{problem.n, conv.rows().out_size(problem.h), conv.columns().out_size(problem.w), conv.out_channels};
  return cpu::storage_count(shape, Layout::features, lanes) * size_of(problem.precision);
}

std::int64_t weight_bytes(const ConvProblem& problem, int lanes) {
  const Conv2d& conv = problem.conv;
  const std::array dims{conv.out_channels, conv.in_channels, conv.kernel.height, conv.kernel.width};
  return cpu::storage_count(ParameterKind::conv_weight, dims, lanes) * size_of(DType::f32);
}

// GNU's OpenMP keeps oneDNN's threads spinning for some milliseconds after a loop, on the cores of the next contestant.
// The next contestant must also not be the one that wakes idle cores, which never happens in a training. So this
// pauses, then runs the contestant once.
void warm_up(const Contestant& contestant) {
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  contestant.run();
}

void time(Contestant& contestant, int threads) {
  if (threads > 1) warm_up(contestant);
  const double start = work_seconds(threads);
  contestant.run();
  contestant.seconds = std::min(contestant.seconds, work_seconds(threads) - start);
}

// The first round loads code and pages. Contestants that are far behind after it are dropped.
RaceResult fastest(std::vector<Contestant>& contestants) {
  RaceResult best{"none", std::numeric_limits<double>::infinity()};
  for (const Contestant& contestant : contestants) {
    if (contestant.seconds < best.seconds) best = {contestant.name, contestant.seconds};
  }
  return best;
}

void drop_hopeless(std::vector<Contestant>& contestants) {
  constexpr double hopeless = 1.5;
  const double best = fastest(contestants).seconds;
  std::erase_if(contestants, [&](const Contestant& contestant) { return contestant.seconds > hopeless * best; });
}

// The surroundings of a convolution in a step: memory of the previous norm, of the ReLU mask and of sums, and of the
// next norm, whose gradient backward_weight applies.
class StepCall {
 public:
  StepCall(const ConvProblem& problem, int lanes)
      : channels_((std::max(problem.conv.in_channels, problem.conv.out_channels) / lanes + 1) * lanes),
        norm_rows_(channels_ * cpu::norm_rows * std::int64_t{sizeof(float)}),
        mask_x_(input_bytes(problem, lanes)),
        next_norm_x_(output_bytes(problem, lanes)),
        next_norm_dx_(output_bytes(problem, lanes)),
        totals_(2 * static_cast<std::size_t>(channels_)),
        norm_{reinterpret_cast<const float*>(norm_rows_.data()), Activation::relu},
        next_norm_{norm_.rows, next_norm_x_.data(), next_norm_dx_.data()},
        sums_{totals_.data(), totals_.data() + channels_} {}

  cpu::ConvCall call(const ConvProblem& problem, const std::array<std::byte*, 3>& operands) const {
    cpu::ConvCall call{operands};
    if (problem.input == Layout::features) call.x_norm = &norm_;
    if (problem.direction == Direction::backward_data) call.mask_x = mask_x_.data();
    if (problem.direction == Direction::backward_weight) {
      call.dy_norm = &next_norm_;
    } else {
      call.sums = &sums_;
    }
    return call;
  }

 private:
  std::int64_t channels_;
  Buffer norm_rows_;
  Buffer mask_x_;
  Buffer next_norm_x_, next_norm_dx_;
  std::vector<double> totals_;
  cpu::InputNorm norm_;
  cpu::DeferredNormGradient next_norm_;
  cpu::OutputSums sums_;
};

// The minimum of several runs.
double seconds_in_step(cpu::ConvKernel& kernel, const cpu::ConvCall& call, std::byte* scratch, int threads, int rounds,
                       CacheFlush& caches) {
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    caches.flush(threads);
    const double start = work_seconds(threads);
    kernel.run(call, scratch);
    best = std::min(best, work_seconds(threads) - start);
  }
  return best;
}

// The kernels must outlive the runs of their contestants.
struct Kernels {
  std::vector<std::unique_ptr<cpu::ConvKernel>> ours;  // the default kernel first
  std::vector<std::pair<std::string, std::unique_ptr<cpu::OneDnnKernel>>> onednn;

  std::int64_t scratch_bytes() const {
    std::int64_t bytes = 0;
    for (const auto& kernel : ours) bytes = std::max(bytes, kernel->scratch_bytes());
    for (const auto& [name, kernel] : onednn) bytes = std::max(bytes, kernel->scratch_bytes());
    return bytes;
  }
};

Kernels kernels_for(const ConvProblem& problem, const cpu::KernelTarget& target, int lanes) {
  Kernels kernels;
  kernels.ours.push_back(cpu::make_kernel(problem, target));
  for (const auto make : {cpu::make_winograd, cpu::make_direct}) {
    auto kernel = make(problem, target);
    if (kernel != nullptr && kernel->name() != kernels.ours.front()->name()) kernels.ours.push_back(std::move(kernel));
  }
  cpu::visit_convolutions(problem, lanes, [&](const std::string& name, const cpu::CompileKernel& compile) {
    if (name.find(" ref") != std::string::npos) return;  // reference loops, hundreds of times slower
    if (auto kernel = compile()) kernels.onednn.emplace_back(name, std::move(kernel));
  });
  return kernels;
}

}  // namespace

std::int64_t operand_bytes(const ConvProblem& problem, const cpu::KernelTarget& target) {
  const int lanes = lanes_of(target.set);
  const std::int64_t relu_masks = problem.direction == Direction::backward_data ? 1 : 0;
  const std::int64_t behind = problem.direction == Direction::backward_weight ? 2 : 0;
  return (1 + relu_masks) * input_bytes(problem, lanes) + (1 + behind) * output_bytes(problem, lanes) +
         weight_bytes(problem, lanes);
}

Race race(const ConvProblem& problem, const cpu::KernelTarget& target, int rounds, CacheFlush& caches) {
  omp_set_num_threads(target.threads);  // oneDNN uses OpenMP's number of threads
  const int lanes = lanes_of(target.set);
  const Buffer x(input_bytes(problem, lanes));
  const Buffer y(output_bytes(problem, lanes));
  const Buffer weight(weight_bytes(problem, lanes));
  std::array operands{x.data(), weight.data(), y.data()};
  if (problem.direction == Direction::backward_data) operands = {y.data(), weight.data(), x.data()};
  if (problem.direction == Direction::backward_weight) operands = {x.data(), y.data(), weight.data()};

  const Kernels kernels = kernels_for(problem, target, lanes);
  const Buffer scratch(kernels.scratch_bytes());
  std::vector<Contestant> ours;
  ours.reserve(kernels.ours.size());
  for (const auto& kernel : kernels.ours) {
    ours.push_back({kernel->name(), [&] { kernel->run({operands}, scratch.data()); }});
  }
  std::vector<Contestant> peers;
  peers.reserve(kernels.onednn.size());
  for (const auto& [name, kernel] : kernels.onednn) {
    peers.push_back({name, [&, &kernel = kernel] { kernel->run(operands, scratch.data()); }});
  }
  for (int round = 0; round <= rounds; ++round) {
    for (Contestant& contestant : ours) time(contestant, target.threads);
    for (Contestant& contestant : peers) time(contestant, target.threads);
    if (round == 0) drop_hopeless(peers);
  }
  const StepCall around(problem, lanes);
  const double in_step = seconds_in_step(*kernels.ours.front(), around.call(problem, operands), scratch.data(),
                                         target.threads, rounds, caches);
  return {{ours.front().name, ours.front().seconds}, {ours.front().name, in_step}, fastest(ours), fastest(peers)};
}

}  // namespace lockstep
