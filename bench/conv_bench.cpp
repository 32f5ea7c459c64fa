// The convolutions of a training step, layer by layer: effective GFLOP/s of our kernels and of oneDNN's best for the
// same layer, measured in turn, and the share of the cores' measured peak. One Markdown table a model.
//
//   conv_bench
//   conv_bench --model resnet18 --batch 64 --threads 1 --precision bf16 --verbose
#include <CLI/CLI.hpp>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "convolution_bound.hpp"
#include "device/cpu/threads/threads.hpp"
#include "device/precision.hpp"
#include "fma_peak.hpp"
#include "kernel_race.hpp"
#include "launch/choice_option.hpp"
#include "launch/number_option.hpp"
#include "launch/parse.hpp"
#include "onednn/onednn_adapter.hpp"

using namespace lockstep;

namespace {

constexpr std::array<Choice<DType>, 2> measured{{{"fp32", DType::f32}, {"bf16", DType::bf16}}};

struct ConvBenchOptions {
  std::vector<std::string> models{"resnet18", "resnet20", "resnet50"};
  std::int64_t image_size = 0;
  std::int64_t batch = 0;
  int threads = 0;
  int rounds = 10;
  DType precision = DType::f32;
  bool verbose = false;

  void declare(CLI::App& app) {
    app.description("Measures the convolutions of a training step against oneDNN's.");
    app.add_option("--model", models, "resnet18, resnet20, resnet50");
    add_number(app, "--image-size", image_size, {0, 1024}, "pixels; 0: 224 for resnet50, else 32");
    add_number(app, "--batch", batch, {0, 65536}, "samples; 0: 64, 128 and 16 of the models above");
    add_number(app, "--threads", threads, {0, 4096}, "0: all cores that this process may use");
    add_number(app, "--rounds", rounds, {1, 1000}, "of which the best counts");
    add_choice(app, "--precision", measured, precision, "of activations");
    app.add_flag("--verbose", verbose, "print which kernels were the fastest");
  }
};

// Seconds of a whole step's convolutions.
struct StepSeconds {
  double ours = 0;
  double onednn = 0;
};

// One direction of one layer as a cell of the table.
std::string raced(const ConvProblem& problem, const cpu::KernelTarget& target, const ConvBenchOptions& options,
                  double peak, int times, StepSeconds& step) {
  const Race result = race(problem, target, options.rounds);
  const double gflop = problem.flops() * 1e-9;
  step.ours += times * result.ours.seconds;
  step.onednn += times * result.onednn.seconds;
  constexpr double worth_telling = 1.05;
  if (result.ours.seconds > worth_telling * result.best_ours.seconds) {
    log::warning("the rule takes {} for {}, but {} takes {:.0f} % of its time", result.ours.name, problem.text(),
                 result.best_ours.name, 100 * result.best_ours.seconds / result.ours.seconds);
  }
  if (options.verbose) log::info("{}: {}, oneDNN: {}", problem.text(), result.ours.name, result.onednn.name);
  return fmt::format("{:.0f} / {:.0f} ({:.2f}; {:.0f} %)", gflop / result.ours.seconds, gflop / result.onednn.seconds,
                     result.onednn.seconds / result.ours.seconds, 100 * gflop / result.ours.seconds / peak);
}

void print_row(const std::string& layer, const std::string& times, const std::array<std::string, 3>& directions) {
  const auto& [forward, data, weight] = directions;
  log::plain(fmt::format("| {:<26} | {:>5} | {:<24} | {:<24} | {:<24} |", layer, times, forward, data, weight));
}

void print_model(const std::string& model, const ConvBenchOptions& options, const cpu::KernelTarget& target) {
  const bool is_large = model == "resnet50";
  const std::int64_t batch = options.batch > 0 ? options.batch : is_large ? 16 : model == "resnet20" ? 128 : 64;
  const std::int64_t size = options.image_size > 0 ? options.image_size : is_large ? 224 : 32;
  const double peak = fma_peak(target.set, target.threads);
  log::plain(fmt::format("\n{}, {} pixels, batch {}, {}; {} thread(s), {}, {:.0f} GFLOP/s at most; oneDNN {}", model,
                         size, batch, precision_name(options.precision), target.threads, name_of(target.set), peak,
                         cpu::onednn_version()));
  log::plain("Effective GFLOP/s of ours / of oneDNN's best (ratio; ours of what the cores can)\n");
  print_row("layer", "times", {"forward", "backward-data", "backward-weight"});
  print_row("---", "---", {"---", "---", "---"});
  StepSeconds step;
  for (const ConvLayer& layer : convolutions_of(model, size)) {
    const auto& [in, out, kernel, stride, padding] = layer.conv;
    const auto cell = [&](Direction direction) {
      const Layout input = layer.reads_images ? Layout::images : Layout::features;
      const ConvProblem problem{direction, layer.conv, batch, layer.size, layer.size, input, options.precision};
      const bool is_wanted = direction != Direction::backward_data || !layer.reads_images;
      return is_wanted ? raced(problem, target, options, peak, layer.times, step) : "-";
    };
    const std::string strided = stride > 1 ? fmt::format(" / {}", stride) : "";
    print_row(fmt::format("{} → {}, {}x{}{}, {} px", in, out, kernel, kernel, strided, layer.size),
              std::to_string(layer.times),
              {cell(Direction::forward), cell(Direction::backward_data), cell(Direction::backward_weight)});
  }
  const auto rate = [&](double seconds) { return static_cast<double>(batch) / seconds; };
  log::plain(fmt::format("\nconvolutions only: {:.1f} samples/s, oneDNN {:.1f}: ratio {:.2f}", rate(step.ours),
                         rate(step.onednn), step.onednn / step.ours));
}

}  // namespace

int main(int argc, char** argv) {
  ConvBenchOptions options;
  const auto declare = [&options](CLI::App& app) { options.declare(app); };
  if (const std::optional<int> code = parse_options(argc, argv, declare, 0)) return *code;
  try {
    const cpu::KernelTarget target{cpu::widest_instruction_set(), cpu::choose_threads(options.threads, 0, 1)};
    for (const std::string& model : options.models) print_model(model, options, target);
  } catch (const Error& error) {
    log::error(error.what());
    return error.exit_code();
  }
  return 0;
}
