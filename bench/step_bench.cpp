// Benchmarks whole training steps on noise: forward, backward, all-reduce, update. Prints one JSON line.
//
//   mpirun -n 2 step_bench --model resnet18 --image-size 32 --batch 64 --threads 1 --steps 20
//   step_bench --model resnet50 --image-size 224 --classes 1000 --batch 256 --first-step
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "convolution_bound.hpp"
#include "device/precision.hpp"
#include "first_step.hpp"
#include "launch/field_options.hpp"
#include "launch/number_option.hpp"
#include "launch/run.hpp"
#include "machine/process_facts.hpp"
#include "models/model_zoo.hpp"
#include "nn/initialize.hpp"
#include "step/all_reduce.hpp"
#include "step/noise.hpp"
#include "step/training_step.hpp"
#include "step_windows.hpp"

using namespace lockstep;

namespace {

// Whether to measure, after the steps, the upper bound that the convolutions set.
enum class Bound { none, convolutions };

struct StepBenchOptions {
  std::string model = "resnet18";
  std::int64_t image_size = 32;
  std::int64_t classes = 10;
  std::int64_t channels = 3;
  std::int64_t batch = 64;
  std::int64_t steps = 20;
  std::int64_t pause_ms = 0;
  std::int64_t first_rank_pause_ms = 0;
  Bound bound = Bound::none;
  bool separate_blocks = false;
  Settings settings;  // of the device and the exchange between ranks

  void declare(CLI::App& app) {
    app.description("Measures whole training steps on noise. Prints one JSON line.");
    constexpr NumberRange<std::int64_t> count{1, std::int64_t{1} << 20};
    app.add_option("--model", model, "Network: " + known_models())->type_name("NAME");
    add_number(app, "--image-size", image_size, count, "Height and width of the input")->type_name("PIXELS");
    add_number(app, "--channels", channels, count, "Channels of the input")->type_name("COUNT");
    add_number(app, "--classes", classes, count, "Number of classes")->type_name("COUNT");
    add_number(app, "--batch", batch, count, "Samples per rank and step")->type_name("SAMPLES");
    add_number(app, "--steps", steps, count, "Timed steps")->type_name("STEPS");
    constexpr NumberRange<std::int64_t> pause{0, 60'000};
    add_number(app, "--pause", pause_ms, pause,
               "Sleep this long before each micro-batch: in the place of computing, where ranks share few cores")
        ->type_name("MS");
    add_number(app, "--first-rank-pause", first_rank_pause_ms, pause, "The same on rank 0, if it is to be slower")
        ->type_name("MS");
    app.add_flag_callback(
        "--convolution-bound", [this] { bound = Bound::convolutions; },
        "Also measure the step's convolutions alone, an upper bound of the speed");
    app.add_flag("--separate-blocks", separate_blocks,
                 "On a GPU, allocate each tensor on its own: compute-sanitizer then sees where it ends");
    // Handled by main before anything is opened.
    app.add_flag_callback(
        "--first-step", [] {}, "Only measure the time to the first step, without and with stored kernel choices");
    declare_fields(app, settings, {FieldGroup::device, FieldGroup::sync, FieldGroup::reduction});
  }
  DeviceOptions device_options() const {
    DeviceOptions options = lockstep::device_options(settings.recipe, settings.run);
    options.separate_blocks = separate_blocks;
    return options;
  }
};

// Returns the same batch every time, after a pause.
class NoiseLoader final : public Loader {
 public:
  NoiseLoader(Batch batch, std::chrono::milliseconds pause) : batch_(std::move(batch)), pause_(pause) {}
  const Batch& next() override {
    std::this_thread::sleep_for(pause_);
    return batch_;
  }
  double waited_ms() const override { return 0; }

 private:
  Batch batch_;
  std::chrono::milliseconds pause_;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

constexpr double learning_rate = 1e-3;  // small: noise cannot be learned, and the loss must stay finite

struct Timing {
  std::vector<double> step_ms;  // one per window
  double seconds = 0;
  SyncCost sync;  // of the timed steps
};

void require_finite(const StepResult& result) {
  require(result.divergence.empty(), Failure::diverged,
          "a step on noise came to values that are no numbers, so its time says nothing. Choose another --precision, "
          "--batch or --image-size.");
}

// Collective.
Timing time_steps(TrainingStep& step, Loader& loader, const Session& session, std::int64_t steps) {
  constexpr std::int64_t untimed = 3;
  for (std::int64_t index = 0; index < untimed; ++index) require_finite(step.run(loader, index, learning_rate));
  Timing timing;
  const SyncCost before = step.sync().cost();
  session.world.barrier();
  const Stopwatch whole;
  timing.step_ms = time_windows(
      steps, session.device().steps_ahead(), [&](std::int64_t index) { step.start(loader, index, learning_rate); },
      [&] { require_finite(step.finish()); }, [&] { return whole.milliseconds(); });
  timing.seconds = whole.seconds();
  timing.sync.within_backward_ms = step.sync().cost().within_backward_ms - before.within_backward_ms;
  timing.sync.after_backward_ms = step.sync().cost().after_backward_ms - before.after_backward_ms;
  return timing;
}

void bench(Session& session, const StepBenchOptions& options) {
  const Communicator& world = session.world;
  const Recipe& recipe = options.settings.recipe;
  const BatchOptions batch{std::nullopt, options.batch, 1, {}, recipe.batch.local_steps};
  const LoaderShare share = loader_share(batch, world.rank(), world.size(), servers_of(options.settings));
  const ModelOptions model{options.model, {options.image_size, options.image_size, options.channels}, options.classes};
  Model own(session.device(), model);
  const WeightSyncOptions how{all_reduce_options(recipe, options.settings.run),
                              {.momentum_kind = Momentum::nesterov},
                              {},
                              options.settings.run.sums.shard_optimizer,
                              local_updates(recipe),
                              async_updates(recipe)};
  const std::unique_ptr<WeightSync> sync = make_weight_sync(session, own.store, how, share.total_micro_batches);
  initialize(own.store, 0);
  sync->begin();
  TrainingStep step(session, own, *sync, share, 0.0F);
  step.choose_kernels({options.batch});
  const bool is_slower = world.rank() == 0 && options.first_rank_pause_ms > 0;
  NoiseLoader loader(noise_batch(session.device(), model.sample, options.batch, options.classes),
                     std::chrono::milliseconds(is_slower ? options.first_rank_pause_ms : options.pause_ms));
  step.run(loader, 0, learning_rate);
  const double first_step_seconds = world.max(seconds_since_process_start());
  const Timing timing = time_steps(step, loader, session, options.steps);

  const double seconds = world.max(timing.seconds);
  const auto steps = static_cast<double>(options.steps);
  const double rate = steps * static_cast<double>(share.global_batch) / seconds;
  nlohmann::json line = {
      {"samples_per_second", rate},
      {"step_ms_median", world.max(median(timing.step_ms))},
      {"first_step_seconds", first_step_seconds},
      {"kernels_recalled", step.plan_use().recalled},
      {"kernels_measured", step.plan_use().measured},
      {"peak_memory_bytes", static_cast<std::int64_t>(world.max(static_cast<double>(peak_memory_bytes())))},
      {"device_memory_bytes", session.device().peak_bytes()},
      {"sync_ms_within_backward", world.max(timing.sync.within_backward_ms) / steps},
      {"sync_ms_after_backward", world.max(timing.sync.after_backward_ms) / steps},
      {"buckets", step.sync().bucket_count()},
      {"reducer", step.sync().description()},
      {"model", options.model},
      {"image_size", options.image_size},
      {"batch_per_rank", options.batch},
      {"ranks", world.size()},
      {"steps", options.steps},
      {"precision", precision_name(options.settings.recipe.arithmetic.precision)},
      {"device", session.device().description()}};
  if (options.bound == Bound::convolutions) {
    const double bound = world.sum(
        convolution_bound(session.device(), convolutions_of(options.model, options.image_size), options.batch));
    line["convolution_bound_samples_per_second"] = bound;
    line["share_of_convolution_bound"] = rate / bound;
  }
  log::plain(line.dump());
}

}  // namespace

int main(int argc, char** argv) {
  if (asks_for_first_step(argc, argv)) return time_first_steps(argc, argv);
  return run<StepBenchOptions>(argc, argv, bench);
}
