// Benchmarks the convolutions of a training step, layer by layer. Reports effective GFLOP/s of Lockstep's kernels and
// of oneDNN's best for the same layer, interleaved, on operands in the caches. Also reports Lockstep's kernels as a
// step calls them, with the limits of compute and memory. Prints one Markdown table per model.
//
//   conv_bench
//   conv_bench --model resnet18 --batch 64 --threads 1 --precision bf16 --verbose
#include <CLI/App.hpp>
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "convolution_bound.hpp"
#include "device/cpu/instruction_sets/instruction_set.hpp"
#include "device/cpu/threads/threads.hpp"
#include "device/precision.hpp"
#include "kernel_race.hpp"
#include "launch/choice_option.hpp"
#include "launch/number_option.hpp"
#include "launch/run_outside_ranks.hpp"
#include "machine/fma_peak.hpp"
#include "machine/memory_rates.hpp"
#include "onednn/onednn_adapter.hpp"

using namespace lockstep;

namespace {

// The name differs from lockstep::known_models(), which lists all models.
constexpr std::array<Choice<std::string_view>, 4> listed_models{
    {{"airbench", "airbench"}, {"resnet18", "resnet18"}, {"resnet20", "resnet20"}, {"resnet50", "resnet50"}}};
constexpr std::array<Choice<DType>, 2> measured{{{"fp32", DType::f32}, {"bf16", DType::bf16}}};
constexpr std::array<Choice<cpu::WinogradPairs>, 3> winograd_pair_words{
    {{"none", cpu::WinogradPairs::none}, {"backward", cpu::WinogradPairs::backward}, {"all", cpu::WinogradPairs::all}}};

// Detects that the cores are slower than usual. Virtual cores sometimes are, which distorts ratios.
class CoreWatch {
 public:
  CoreWatch(const cpu::KernelTarget& target, DType features)
      : target_(target), features_(features), first_(peak()), last_(first_), best_(first_) {}

  // Returns " *" if the cores were slower before or after the work since the last call.
  const char* mark() {
    const double before = std::exchange(last_, peak());
    best_ = std::max(best_, last_);
    const bool is_slow = std::min(before, last_) < usual * best_;
    slow_ += is_slow ? 1 : 0;
    return is_slow ? " *" : "";
  }

  std::string message() const {
    std::string message = fmt::format(
        "the cores' peak was {:.0f} GFLOP/s before the table, {:.0f} after it, {:.0f} at best", first_, last_, best_);
    if (slow_ > 0) message += fmt::format("; in {} rows marked * it was below nine tenths of the best", slow_);
    return message;
  }

 private:
  static constexpr double usual = 0.9;
  double peak() const { return fma_peak(target_.set, target_.threads, features_); }

  cpu::KernelTarget target_;
  DType features_;
  double first_, last_, best_;
  int slow_ = 0;
};

struct ConvBenchOptions {
  std::vector<std::string> models{"resnet18", "resnet20", "resnet50"};
  std::int64_t image_size = 0;
  std::int64_t batch = 0;
  int threads = 0;
  int rounds = 10;
  DType precision = DType::f32;
  cpu::WinogradPairs winograd_pairs = cpu::WinogradPairs::backward;
  bool verbose = false;

  void declare(CLI::App& app) {
    app.description("Compares the speed of a training step's convolutions with oneDNN's.");
    add_choices(app, "--model", listed_models, models, "Networks whose convolutions to measure, one table each");
    add_number(app, "--image-size", image_size, {0, 1024}, "Height and width in pixels; 0: 224 for resnet50, else 32");
    add_number(app, "--batch", batch, {0, 65536}, "Samples; 0: 64 for resnet18, 128 for resnet20, 16 for resnet50");
    add_number(app, "--threads", threads, {0, 4096}, "CPU threads; 0: one per core that this process may use");
    add_number(app, "--rounds", rounds, {1, 1000}, "Measurements, of which the best counts");
    add_choice(app, "--precision", measured, precision, "Type of activations");
    add_choice(app, "--winograd-pairs", winograd_pair_words, winograd_pairs,
               "With --precision bf16: directions in which Winograd multiplies bf16, if the CPU is fast at it");
    app.add_flag("--verbose", verbose, "Print the fastest kernels");
  }
};

// The limits of the machine.
struct Bounds {
  double gflops;
  MemoryRates rates;
};

// Seconds of all convolutions of a step.
struct StepSeconds {
  double ours = 0;
  double in_step = 0;
  double onednn = 0;
  double computing = 0;  // at peak compute rate
  double moving = 0;     // at peak memory rate
  double gigabytes = 0;
};

// One direction of one layer, as a table cell.
std::string raced(const ConvProblem& problem, const cpu::KernelTarget& target, const ConvBenchOptions& options,
                  const Bounds& bounds, int times, CacheFlush& caches, StepSeconds& step) {
  const Race result = race(problem, target, options.rounds, caches);
  const double gflop = problem.flops() * 1e-9;
  const double gigabytes = static_cast<double>(operand_bytes(problem, target)) * 1e-9;
  const double computing = gflop / bounds.gflops;
  const double moving = gigabytes / bounds.rates.memory;
  step.ours += times * result.ours.seconds;
  step.in_step += times * result.in_step.seconds;
  step.onednn += times * result.onednn.seconds;
  step.computing += times * computing;
  step.moving += times * moving;
  step.gigabytes += times * gigabytes;
  constexpr double worth_telling = 1.05;
  if (result.ours.seconds > worth_telling * result.best_ours.seconds) {
    log::warning("the rule of lib/device/cpu takes {} for {}, but {} takes {:.0f} % of its time", result.ours.name,
                 problem.text(), result.best_ours.name, 100 * result.best_ours.seconds / result.ours.seconds);
  }
  if (options.verbose) log::info("{}: {}, oneDNN: {}", problem.text(), result.ours.name, result.onednn.name);
  return fmt::format("{:.0f} / {:.0f} ({:.2f}); {:.0f}: {:.0f} % {:.0f} %", gflop / result.ours.seconds,
                     gflop / result.onednn.seconds, result.onednn.seconds / result.ours.seconds,
                     gflop / result.in_step.seconds, 100 * computing / result.in_step.seconds,
                     100 * moving / result.in_step.seconds);
}

void print_row(const std::string& layer, const std::string& times, const std::array<std::string, 3>& directions) {
  const auto& [forward, data, weight] = directions;
  log::plain(fmt::format("| {:<28} | {:>5} | {:<32} | {:<32} | {:<32} |", layer, times, forward, data, weight));
}

void print_model(const std::string& model, const ConvBenchOptions& options, const cpu::KernelTarget& target) {
  const bool is_large = model == "resnet50";
  const std::int64_t batch = options.batch > 0 ? options.batch : is_large ? 16 : model == "resnet20" ? 128 : 64;
  const std::int64_t size = options.image_size > 0 ? options.image_size : is_large ? 224 : 32;
  const Bounds bounds{fma_peak(target.set, target.threads, options.precision),
                      memory_rates(target.set, target.threads)};
  log::plain(fmt::format("\n{}, {} pixels, batch {}, {}; {} thread(s), {}; oneDNN {}", model, size, batch,
                         precision_name(options.precision), target.threads, name_of(target.set),
                         cpu::onednn_version()));
  log::plain(
      fmt::format("the cores: {:.0f} GFLOP/s; read from L2 {:.0f} GB/s, from L3 {:.0f}, from memory {:.0f}; "
                  "copied in memory, both sides counted, {:.0f}",
                  bounds.gflops, bounds.rates.l2, bounds.rates.l3, bounds.rates.memory, bounds.rates.copy));
  log::plain("Cells: effective GFLOP/s of ours / of oneDNN's best (ratio), operands in caches;");
  log::plain(
      "ours as in a step, operands from memory, with norms, ReLU masks and sums: share of that time that the cores' "
      "peak");
  log::plain("would take, share that one read of the operands from memory would take\n");
  print_row("layer", "times", {"forward", "backward-data", "backward-weight"});
  print_row("---", "---", {"---", "---", "---"});
  StepSeconds step;
  CoreWatch cores(target, options.precision);
  CacheFlush caches;
  for (const ConvLayer& layer : convolutions_of(model, size)) {
    const auto& [in, out, kernel, stride, padding] = layer.conv;
    const auto cell = [&](Direction direction) {
      const Layout input = layer.reads_images ? Layout::images : Layout::features;
      const ConvProblem problem{direction, layer.conv, batch, layer.size, layer.size, input, options.precision};
      const bool is_wanted = direction != Direction::backward_data || !layer.reads_images;
      return is_wanted ? raced(problem, target, options, bounds, layer.times, caches, step) : "-";
    };
    const std::array cells{cell(Direction::forward), cell(Direction::backward_data), cell(Direction::backward_weight)};
    const std::string strided = stride == 1 ? "" : " / " + stride.text();
    print_row(fmt::format("{} → {}, {}x{}{}, {} px{}", in, out, kernel.height, kernel.width, strided, layer.size,
                          cores.mark()),
              std::to_string(layer.times), cells);
  }
  const auto rate = [&](double seconds) { return static_cast<double>(batch) / seconds; };
  log::plain(fmt::format("\nconvolutions only: {:.1f} samples/s, oneDNN {:.1f}: ratio {:.2f}; as in a step {:.1f}",
                         rate(step.ours), rate(step.onednn), step.onednn / step.ours, rate(step.in_step)));
  log::plain(
      fmt::format("their operands are {:.2f} GB, {:.0f} ms from memory; their products {:.0f} ms at the cores' "
                  "peak; as in a step they take {:.0f} ms",
                  step.gigabytes, 1e3 * step.moving, 1e3 * step.computing, 1e3 * step.in_step));
  log::plain(cores.message());
}

}  // namespace

int main(int argc, char** argv) {
  return run_outside_ranks<ConvBenchOptions>(argc, argv, [](const ConvBenchOptions& options) {
    const cpu::InstructionSet widest = cpu::widest_instruction_set();
    const bool is_fp32 = options.precision == DType::f32;
    cpu::KernelTarget target{is_fp32 ? cpu::facts_of(widest).in_fp32 : widest,
                             cpu::choose_threads(options.threads, 0, 1)};
    target.winograd_pairs = options.winograd_pairs;
    for (const std::string& model : options.models) print_model(model, options, target);
    return 0;
  });
}
