#include "launch/options.hpp"

#include <array>
#include <cstdint>
#include <limits>

#include "launch/choice_option.hpp"
#include "launch/number_option.hpp"
#include "models/model_zoo.hpp"
#include "runtime/plan_file.hpp"

namespace lockstep {

namespace {

constexpr std::array<Choice<DType>, 3> precisions{{{"fp32", DType::f32}, {"bf16", DType::bf16}, {"fp16", DType::f16}}};
constexpr std::array<Choice<Schedule>, 4> schedules{{{"constant", Schedule::constant},
                                                     {"step", Schedule::step},
                                                     {"cosine", Schedule::cosine},
                                                     {"one-cycle", Schedule::one_cycle}}};
constexpr std::array<Choice<std::optional<Augmentation>>, 4> augmentations{
    {{"auto", std::nullopt},
     {"none", Augmentation::none},
     {"crop", Augmentation::crop},
     {"crop-flip", Augmentation::crop_and_flip}}};
constexpr std::array<Choice<DataPlace>, 3> data_places{
    {{"auto", DataPlace::automatic}, {"device", DataPlace::device}, {"host", DataPlace::host}}};
constexpr std::array<Choice<const char*>, 4> reducers{
    {{"auto", "auto"}, {"nccl", "nccl"}, {"mpi", "mpi"}, {"shared", "shared"}}};
constexpr std::array<Choice<DType>, 2> wires{{{"fp32", DType::f32}, {"bf16", DType::bf16}}};
constexpr std::array<Choice<const char*>, 5> instruction_sets{{{"auto", "auto"},
                                                               {"avx512_bf16", "avx512_bf16"},
                                                               {"avx512", "avx512"},
                                                               {"avx2", "avx2"},
                                                               {"baseline", "baseline"}}};
constexpr std::array<Choice<bool>, 2> convolutions{{{"auto", false}, {"direct", true}}};
constexpr std::array<Choice<const char*>, 3> devices{{{"auto", "auto"}, {"cpu", "cpu"}, {"cuda", "cuda"}}};

// Of real numbers: a quantity of people's, with room, and far from what overflows when it is multiplied.
constexpr double largest = 1e9;
constexpr NumberRange<double> above_zero{0, largest, LeastIs::excluded};
constexpr NumberRange<double> from_zero{0, largest};
constexpr std::int64_t most_samples = std::int64_t{1} << 31;
constexpr NumberRange<std::int64_t> any_count{1, most_samples};
constexpr NumberRange<std::int64_t> any_count_or_none{0, most_samples};

}  // namespace

void declare_device(CLI::App& app, DeviceOptions& device) {
  add_choice(app, "--device", devices, device.name, device.name, "Where to compute");
  add_choice(app, "--precision", precisions, device.precision, name_of(precisions, device.precision),
             "Of activations; weights, statistics and sums are fp32 in any case. fp16: on a GPU, with loss scaling");
  add_number(app, "--threads", device.threads, {0, 4096}, "Threads of each rank; 0: its share of the cores it may use")
      ->type_name("THREADS");
  add_choice(app, "--instruction-set", instruction_sets, device.instruction_set, device.instruction_set,
             "On a CPU: vectors to compute with; auto: the widest that the processor has");
  add_choice(app, "--convolutions", convolutions, device.direct_convolutions,
             name_of(convolutions, device.direct_convolutions),
             "On a CPU: auto: by Winograd where that is faster; direct: nowhere");
  app.add_flag("--tf32", device.tf32, "On a GPU: fp32 convolutions and products in TF32, of 10 bits");
  app.add_flag_callback(
      "--no-graphs", [&device] { device.graphs = false; },
      "On a GPU: queue every call of a step anew instead of recording the step once");
  app.add_flag("--deterministic", device.deterministic,
               "On a GPU: the same bits in every run; no kernel is timed. --virtual-ranks does so anyway");
  device.plan_folder = default_plan_folder(this_job());
  app.add_option("--plan-folder", device.plan_folder, "Where kernel choices are kept between runs; '': nowhere")
      ->type_name("FOLDER");
  app.add_flag("--verbose", device.verbose, "Print the kernel chosen for each layer and direction");
}

void declare_data(CLI::App& app, Recipe& recipe) {
  app.add_option("--data", recipe.data, "Folder made by make_shards, with train/ and test/")
      ->required()
      ->type_name("FOLDER");
  add_choice(app, "--augment", augmentations, recipe.augmentation, name_of(augmentations, recipe.augmentation),
             "Changes to training pictures; auto: crop-flip for pictures, crop for digits");
  add_choice(app, "--data-on", data_places, recipe.data_place, name_of(data_places, recipe.data_place),
             "Where a GPU takes samples from: its own memory, the host's, or (auto) its own if they fit well");
  add_number(app, "--loader-threads", recipe.loader_threads, {1, 256},
             "Threads of each rank that read and augment samples")
      ->type_name("THREADS");
}

void declare_model(CLI::App& app, Recipe& recipe) {
  app.add_option("--model", recipe.model, "Network: " + known_models())->type_name("NAME");
  add_number(app, "--epochs", recipe.epochs, {1, 1000000}, "Passes over the training set")->type_name("EPOCHS");
  add_number(app, "--seed", recipe.seed, {0, std::numeric_limits<std::uint64_t>::max()},
             "Of weights, sample order and augmentation")
      ->type_name("NUMBER");
  add_number(app, "--label-smoothing", recipe.label_smoothing, {0, 0.999F},
             "Share of the target spread over all classes")
      ->type_name("SHARE");
}

void declare_batch(CLI::App& app, Recipe& recipe) {
  BatchPlan& batch = recipe.batch;
  CLI::Option* const global =
      add_number(app, "--global-batch", batch.global_batch, any_count, "Samples of all ranks in one step")
          ->type_name("SAMPLES");
  const auto set_per_rank = [&batch](std::int64_t count) {
    batch.global_batch.reset();
    batch.batch_per_rank = count;
  };
  add_number_function<std::int64_t>(app, "--batch-per-rank", set_per_rank, any_count,
                                    "Samples of one part of each rank; the global batch is this x ranks x parts")
      ->excludes(global)
      ->type_name("SAMPLES");
  add_number(app, "--accumulate", batch.accumulate, {1, 65536}, "Parts of each rank in one step, one after another")
      ->type_name("PARTS");
  add_number(app, "--virtual-ranks", batch.virtual_ranks, {1, 65536},
             "Cut the global batch into so many parts and sum them exactly: the same weights, bit for bit, on any "
             "number of ranks up to it")
      ->type_name("PARTS");
}

void declare_optimizer(CLI::App& app, Recipe& recipe) {
  SgdOptions& sgd = recipe.sgd;
  add_number(app, "--momentum", sgd.momentum, {0, 0.9999F}, "Of stochastic gradient descent")->type_name("SHARE");
  app.add_flag_callback(
      "--nesterov", [&sgd] { sgd.kind = Momentum::nesterov; }, "Nesterov's form of momentum");
  add_number(app, "--weight-decay", sgd.weight_decay, {0, static_cast<float>(largest)},
             "Pull of each weight towards zero")
      ->type_name("FACTOR");
  app.add_flag_callback(
      "--no-decay-norm", [&sgd] { sgd.decay_scope = DecayScope::weights_only; }, "No weight decay on norms and biases");
}

void declare_schedule(CLI::App& app, Recipe& recipe) {
  LearningRate& rate = recipe.learning_rate;
  add_number(app, "--lr,--learning-rate", rate.rate, above_zero, "Peak learning rate for a global batch of --lr-batch")
      ->type_name("RATE");
  add_number(app, "--lr-batch", rate.base_batch, any_count_or_none,
             "The rate grows in proportion to the global batch from here; 0: --lr is taken as it is")
      ->type_name("SAMPLES");
  add_choice(app, "--schedule", schedules, rate.schedule, name_of(schedules, rate.schedule), "Course of the rate");
  add_number(app, "--warmup", rate.warmup_epochs, from_zero,
             "Epochs (or parts of one) of rising rate; unset: a fifth of all")
      ->type_name("EPOCHS");
  add_numbers(app, "--milestones", rate.milestones, from_zero,
              "With --schedule step: epochs after which the rate falls")
      ->type_name("EPOCHS");
  add_number(app, "--lr-factor", rate.factor, above_zero,
             "With --schedule step: the rate is multiplied by this at each milestone")
      ->type_name("FACTOR");
}

void declare_reduce(CLI::App& app, ReducePlan& reduce) {
  add_choice(app, "--reduce", reducers, reduce.reducer, reduce.reducer,
             "How gradients are summed over ranks; nccl: between GPUs; shared: through memory, on one node");
  constexpr std::int64_t mebibyte = 1 << 20;
  const auto set_bucket = [&reduce](std::int64_t count) { reduce.bucket_bytes = count * mebibyte; };
  add_number_function<std::int64_t>(
      app, "--bucket-mib", set_bucket, {0, 1024},
      "Gradients that are summed in one go; 0: as latency and bandwidth, measured at the start, suggest")
      ->default_str(std::to_string(reduce.bucket_bytes / mebibyte))
      ->type_name("MIB");
  add_choice(app, "--wire", wires, reduce.wire, name_of(wires, reduce.wire),
             "Precision in which gradients travel between ranks; bf16 with NCCL only");
}

void declare_output(CLI::App& app, Recipe& recipe) {
  app.add_option("--output", recipe.output,
                 "Folder for metrics.jsonl, summary.json and model.h5; unset: none is written")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return text.empty() ? std::string("'' names no folder (is a variable unset?)") : std::string();
          },
          "", "named"))
      ->type_name("FOLDER");
  add_number(app, "--report-every", recipe.report_every, any_count,
             "Steps between two lines of a log file and of metrics.jsonl")
      ->type_name("STEPS");
}

void declare_watch(CLI::App& app, Recipe& recipe) {
  add_number(app, "--hang-timeout", recipe.hang_timeout_seconds, from_zero,
             "A rank that gets no further for so long is named and ends the job; 0: never")
      ->type_name("SECONDS");
  add_number(app, "--audit-every", recipe.audit_every, any_count_or_none,
             "Steps between two comparisons of all ranks' weights; a rank that deviates ends the job; 0: never")
      ->type_name("STEPS");
}

void declare_training(CLI::App& app, Recipe& recipe, DeviceOptions& device) {
  declare_data(app, recipe);
  declare_model(app, recipe);
  declare_batch(app, recipe);
  declare_optimizer(app, recipe);
  declare_schedule(app, recipe);
  declare_device(app, device);
  // The same bits on any number of ranks are the same bits in every run.
  app.get_option("--virtual-ranks")->each([&device](const std::string&) { device.deterministic = true; });
  declare_reduce(app, recipe.reduce);
  declare_output(app, recipe);
  declare_watch(app, recipe);
  declare_checkpoints(app, recipe);
}

}  // namespace lockstep
