#include "launch/options.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "models/model_zoo.hpp"
#include "runtime/plan_file.hpp"

namespace lockstep {

namespace {

template <typename Value>
struct Choice {
  const char* name;
  Value value;
};

template <typename Value>
std::string names_of(std::span<const Choice<Value>> choices) {
  std::string names;
  for (const Choice<Value>& choice : choices) names += (names.empty() ? "" : ", ") + std::string(choice.name);
  return names;
}

// An option whose value is one of a few names. `shown` is the name of the default.
template <typename Value, std::size_t count, typename Target>
void add_choice(CLI::App& app, const std::string& flag, const std::array<Choice<Value>, count>& choices, Target& target,
                const std::string& shown, const std::string& help) {
  const auto find = [&choices](const std::string& name) {
    return std::ranges::find_if(choices, [&](const Choice<Value>& choice) { return name == choice.name; });
  };
  const std::string names = names_of<Value>(choices);
  const auto check = [find, &choices, names](const std::string& name) {
    return find(name) != choices.end() ? std::string() : fmt::format("unknown value '{}'. Known: {}", name, names);
  };
  app.add_option_function<std::string>(
         flag, [find, &target](const std::string& name) { target = find(name)->value; }, help)
      ->check(CLI::Validator(check, names, "known names"))
      ->default_str(shown)
      ->type_name("NAME");
}

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

template <typename Value, std::size_t count>
std::string name_of(const std::array<Choice<Value>, count>& choices, const Value& value) {
  return std::ranges::find_if(choices, [&](const Choice<Value>& choice) { return choice.value == value; })->name;
}

constexpr double largest = 1e9;

}  // namespace

void declare_device(CLI::App& app, DeviceOptions& device) {
  add_choice(app, "--device", devices, device.name, device.name, "Where to compute");
  add_choice(app, "--precision", precisions, device.precision, name_of(precisions, device.precision),
             "Of activations; weights, statistics and sums are fp32 in any case. fp16: on a GPU, with loss scaling");
  app.add_option("--threads", device.threads, "Threads of each rank; 0: its share of the cores it may use")
      ->check(CLI::Range(0, 4096))
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
  device.plan_folder = default_plan_folder();
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
  app.add_option("--loader-threads", recipe.loader_threads, "Threads of each rank that read and augment samples")
      ->check(CLI::Range(1, 256))
      ->type_name("THREADS");
}

void declare_model(CLI::App& app, Recipe& recipe) {
  app.add_option("--model", recipe.model, "Network: " + known_models())->type_name("NAME");
  app.add_option("--epochs", recipe.epochs, "Passes over the training set")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1000000}))
      ->type_name("EPOCHS");
  app.add_option("--seed", recipe.seed, "Of weights, sample order and augmentation")->type_name("NUMBER");
  app.add_option("--label-smoothing", recipe.label_smoothing, "Share of the target spread over all classes")
      ->check(CLI::Range(0.0, 0.999))
      ->type_name("SHARE");
}

void declare_batch(CLI::App& app, Recipe& recipe) {
  BatchPlan& batch = recipe.batch;
  const CLI::Range samples(std::int64_t{1}, std::int64_t{1} << 31);
  CLI::Option* const global = app.add_option("--global-batch", batch.global_batch, "Samples of all ranks in one step");
  global->check(samples)->type_name("SAMPLES");
  if (batch.global_batch) global->default_str(std::to_string(*batch.global_batch));
  const auto set_per_rank = [&batch](std::int64_t count) {
    batch.global_batch.reset();
    batch.batch_per_rank = count;
  };
  app.add_option_function<std::int64_t>("--batch-per-rank", set_per_rank,
                                        "Samples of one part of each rank; the global batch is this x ranks x parts")
      ->check(samples)
      ->excludes(global)
      ->type_name("SAMPLES");
  app.add_option("--accumulate", batch.accumulate, "Parts of each rank in one step, one after another")
      ->check(CLI::Range(1, 65536))
      ->type_name("PARTS");
  app.add_option("--virtual-ranks", batch.virtual_ranks,
                 "Cut the global batch into so many parts and sum them exactly: the same weights, bit for bit, on any "
                 "number of ranks up to it")
      ->check(CLI::Range(1, 65536))
      ->type_name("PARTS");
}

void declare_optimizer(CLI::App& app, Recipe& recipe) {
  SgdOptions& sgd = recipe.sgd;
  app.add_option("--momentum", sgd.momentum, "Of stochastic gradient descent")
      ->check(CLI::Range(0.0, 0.9999))
      ->type_name("SHARE");
  app.add_flag_callback(
      "--nesterov", [&sgd] { sgd.kind = Momentum::nesterov; }, "Nesterov's form of momentum");
  app.add_option("--weight-decay", sgd.weight_decay, "Pull of each weight towards zero")
      ->check(CLI::Range(0.0, largest))
      ->type_name("FACTOR");
  app.add_flag_callback(
      "--no-decay-norm", [&sgd] { sgd.decay_scope = DecayScope::weights_only; }, "No weight decay on norms and biases");
}

void declare_schedule(CLI::App& app, Recipe& recipe) {
  LearningRate& rate = recipe.learning_rate;
  app.add_option("--lr,--learning-rate", rate.rate, "Peak learning rate for a global batch of --lr-batch")
      ->check(CLI::PositiveNumber)
      ->type_name("RATE");
  app.add_option("--lr-batch", rate.base_batch,
                 "The rate grows in proportion to the global batch from here; 0: --lr is taken as it is")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 31))
      ->type_name("SAMPLES");
  add_choice(app, "--schedule", schedules, rate.schedule, name_of(schedules, rate.schedule), "Course of the rate");
  app.add_option("--warmup", rate.warmup_epochs, "Epochs (or parts of one) of rising rate; unset: a fifth of all")
      ->check(CLI::Range(0.0, largest))
      ->type_name("EPOCHS");
  app.add_option("--milestones", rate.milestones, "With --schedule step: epochs after which the rate falls")
      ->check(CLI::Range(0.0, largest))
      ->type_name("EPOCHS");
  app.add_option("--lr-factor", rate.factor, "With --schedule step: the rate is multiplied by this at each milestone")
      ->check(CLI::PositiveNumber)
      ->type_name("FACTOR");
}

void declare_reduce(CLI::App& app, ReducePlan& reduce) {
  add_choice(app, "--reduce", reducers, reduce.reducer, reduce.reducer,
             "How gradients are summed over ranks; nccl: between GPUs; shared: through memory, on one node");
  constexpr std::int64_t mebibyte = 1 << 20;
  app.add_option_function<std::int64_t>(
         "--bucket-mib", [&reduce](std::int64_t count) { reduce.bucket_bytes = count * mebibyte; },
         "Gradients that are summed in one go; 0: as latency and bandwidth, measured at the start, suggest")
      ->check(CLI::Range(0, 1024))
      ->default_str(std::to_string(reduce.bucket_bytes / mebibyte))
      ->type_name("MIB");
  add_choice(app, "--wire", wires, reduce.wire, name_of(wires, reduce.wire),
             "Precision in which gradients travel between ranks; bf16 with NCCL only");
}

void declare_output(CLI::App& app, Recipe& recipe) {
  app.add_option("--output", recipe.output,
                 "Folder for metrics.jsonl, summary.json and model.h5; unset: none is written")
      ->type_name("FOLDER");
  app.add_option("--report-every", recipe.report_every, "Steps between two lines of a log file and of metrics.jsonl")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31))
      ->type_name("STEPS");
}

void declare_watch(CLI::App& app, Recipe& recipe) {
  app.add_option("--hang-timeout", recipe.hang_timeout_seconds,
                 "A rank that gets no further for so long is named and ends the job; 0: never")
      ->check(CLI::Range(0.0, largest))
      ->type_name("SECONDS");
  app.add_option("--audit-every", recipe.audit_every,
                 "Steps between two comparisons of all ranks' weights; a rank that deviates ends the job; 0: never")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 31))
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
