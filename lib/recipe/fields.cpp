#include "recipe/fields.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "device/cpu/instruction_sets/instruction_set.hpp"
#include "device/precision.hpp"
#include "models/model_zoo.hpp"
#include "recipe/field_makers.hpp"
#include "recipe/learning_fields.hpp"

namespace lockstep {
namespace {

constexpr std::array<Choice<std::optional<Augmentation>>, 6> augmentations{
    {{"auto", std::nullopt},
     {"none", Augmentation::none},
     {"crop", Augmentation::crop},
     {"crop-flip", Augmentation::crop_and_flip},
     {"resized-crop", Augmentation::resized_crop},
     {"resized-crop-flip", Augmentation::resized_crop_and_flip}}};
constexpr std::array<Choice<std::optional<Decoding>>, 3> decodings{
    {{"auto", std::nullopt}, {"scaled", Decoding::scaled}, {"exact", Decoding::exact}}};
constexpr std::array<Choice<Flip>, 2> flips{{{"random", Flip::random}, {"alternating", Flip::alternating}}};
constexpr std::array<Choice<CropFill>, 2> crop_fills{{{"zeros", CropFill::zeros}, {"reflect", CropFill::reflect}}};
constexpr std::array<Choice<Shuffle>, 2> shuffles{{{"full", Shuffle::full}, {"blocks", Shuffle::blocks}}};
constexpr std::array<Choice<DataPlace>, 3> data_places{
    {{"auto", DataPlace::automatic}, {"device", DataPlace::device}, {"host", DataPlace::host}}};
constexpr std::array<Choice<Sync>, 4> syncs{{{"all-reduce", Sync::all_reduce},
                                             {"local", Sync::local},
                                             {"ps", Sync::servers},
                                             {"ps-async", Sync::async_servers}}};
constexpr std::array<Choice<LocalShares>, 2> local_shares{
    {{"equal", LocalShares::equal}, {"by-speed", LocalShares::by_speed}}};
constexpr std::array<Choice<const char*>, 4> reducers{
    {{"auto", "auto"}, {"nccl", "nccl"}, {"mpi", "mpi"}, {"shared", "shared"}}};
constexpr std::array<Choice<DType>, 2> wires{{{"fp32", DType::f32}, {"bf16", DType::bf16}}};
constexpr auto instruction_sets = [] {
  std::array<Choice<const char*>, cpu::instruction_sets.size() + 1> choices{{{"auto", "auto"}}};
  std::ranges::transform(
      cpu::instruction_sets, choices.rbegin(),
      [](const char* option) -> Choice<const char*> {
        return {option, option};
      },
      &cpu::InstructionSetFacts::option);
  return choices;
}();
constexpr std::array<Choice<bool>, 2> convolutions{{{"auto", false}, {"direct", true}}};
constexpr std::array<Choice<const char*>, 3> devices{{{"auto", "auto"}, {"cpu", "cpu"}, {"cuda", "cuda"}}};

std::vector<Field> data_fields() {
  constexpr FieldGroup group = FieldGroup::data;
  return {
      required(common(one_value({"data", group, "FOLDER", "Folder made by make_shards, with train/ and test/"},
                                of(&RunOptions::data), NamedFolderForm()))),
      one_value({"data-on", group, "NAME",
                 "Where a GPU reads samples: its own memory (device) or the host's (host); auto: its own if they fit"},
                of(&RunOptions::data_place), one_of(data_places)),
      one_value({"loader-threads", group, "THREADS", "Threads per rank that read and augment samples"},
                of(&RunOptions::loader_threads), from_to(1, 256)),
      one_value({"shuffle", group, "NAME",
                 "Sample order. full: a random permutation of the epoch; blocks: shards are read sequentially and "
                 "shuffled in a window, for data larger than memory"},
                of(&Recipe::order, &ShuffleOptions::shuffle), one_of(shuffles)),
      read_by(one_value({"shuffle-window", group, "MIB", "With --shuffle blocks: size of the window, over all ranks"},
                        of(&Recipe::order, &ShuffleOptions::window_mib), from_to<std::int64_t>(1, 1 << 20)),
              "shuffle", {"blocks"}),
  };
}

std::vector<Field> staging_fields() {
  return {one_value({"stage", FieldGroup::staging, "FOLDER",
                     "Copy the data to this folder of the node's own disk first, once per node, and read them there"},
                    of(&RunOptions::stage), NamedFolderForm())};
}

std::vector<Field> augmentation_fields() {
  constexpr FieldGroup group = FieldGroup::augmentation;
  return {
      common(
          one_value({"augment", group, "NAME",
                     "Training augmentation; auto: crop-flip for pixels, resized-crop-flip for JPEG files. Digits are "
                     "never flipped"},
                    of(&Recipe::images, &ImageOptions::augmentation), one_of(augmentations))),
      read_by(
          one_value(
              {"crop-area", group, "SHARE", "Smallest area of a resized crop, as a share of the image (default: 0.08)"},
              of(&Recipe::images, &ImageOptions::transforms, &RandomTransforms::min_area), from_to(0.001F, 1.0F)),
          "augment", {"auto", "resized-crop", "resized-crop-flip"}),
      read_by(one_value({"flip", group, "NAME",
                         "Which images --augment mirrors: half at random in each epoch, or each in every second epoch"},
                        of(&Recipe::images, &ImageOptions::transforms, &RandomTransforms::flip), one_of(flips)),
              "augment", {"auto", "crop-flip", "resized-crop-flip"}),
      read_by(one_value({"crop-padding", group, "PIXELS", "Padding of a plain crop, on each side"},
                        of(&Recipe::images, &ImageOptions::transforms, &RandomTransforms::crop_padding),
                        from_to<std::int64_t>(0, 4096)),
              "augment", {"auto", "crop", "crop-flip"}),
      read_by(
          one_value({"crop-fill", group, "NAME",
                     "Padding of a plain crop: zeros, or the reflected image without its edge pixel (NumPy's "
                     "reflect)"},
                    of(&Recipe::images, &ImageOptions::transforms, &RandomTransforms::crop_fill), one_of(crop_fills)),
          "augment", {"auto", "crop", "crop-flip"}),
      common(one_value({"image-size", group, "PIXELS", "Side of the network's input (default: from the data set)"},
                       of(&Recipe::images, &ImageOptions::side), from_to<std::int64_t>(8, 4096))),
      one_value({"color-jitter", group, "STRENGTHS",
                 "Random brightness, contrast and saturation, as torchvision's ColorJitter"},
                of(&Recipe::images, &ImageOptions::transforms, &RandomTransforms::jitter), ColorJitterForm()),
      one_value({"cutout", group, "PIXELS",
                 "Side of the square that is erased at a random place of each training image (default: none)"},
                of(&Recipe::images, &ImageOptions::transforms, &RandomTransforms::cutout),
                from_to<std::int64_t>(1, 4096)),
      one_value({"image-size-ramp", group, "FROM:START:END",
                 "Progressive resizing: FROM pixels until epoch START, --image-size from epoch END, linear between, in "
                 "multiples of 32 (or of a fourth number: 24:0:6:4)"},
                of(&Recipe::images, &ImageOptions::ramp), SizeRampForm()),
      one_value({"test-image-size", group, "PIXELS",
                 "Input size in evaluation, which the model file records (default: --image-size)"},
                of(&Recipe::images, &ImageOptions::test_side), from_to<std::int64_t>(8, 4096)),
      one_value(
          {"mixup", group, "ALPHA",
           "Mix pairs of training images and their labels with shares from Beta(ALPHA, ALPHA) (default: no mixing)"},
          of(&Recipe::images, &ImageOptions::transforms, &RandomTransforms::mixup),
          NumberForm<float>{{0, 100, LeastIs::excluded}}),
  };
}

std::vector<Field> resizing_fields() {
  constexpr FieldGroup group = FieldGroup::resizing;
  return {
      one_value({"resize", group, "PIXELS",
                 "Shorter side before the center crop in evaluation; plain training crops are scaled in proportion "
                 "(default: 8/7 of the input size if images have other sizes)"},
                of(&Recipe::images, &ImageOptions::shorter_side), from_to<std::int64_t>(8, 4096)),
      one_value({"decode", group, "NAME",
                 "JPEG decoding. scaled (auto): at 1/2, 1/4 or 1/8 of the size if that is enough; exact: full size, as "
                 "Pillow"},
                of(&Recipe::images, &ImageOptions::decoding), one_of(decodings)),
  };
}

std::vector<Field> model_fields() {
  constexpr FieldGroup group = FieldGroup::model;
  return {
      common(one_value(
          {"model", group, "NAME", "Network: " + known_models() + ", or an ONNX file (NAME.onnx) with its weights"},
          of(&Recipe::model), ModelForm())),
      // The initial weights have no effect on a resumed training.
      may_change(common(one_value({"init-from", group, "FILE",
                                   "Start from the weights in this file: a model, a checkpoint, safetensors or HDF5"},
                                  of(&Recipe::init, &InitialWeights::file), NamedFileForm()))),
      may_change(common(flag({"new-head", group, "",
                              "With --init-from or an ONNX file: initialize the last layer anew, for other classes"},
                             of(&Recipe::init, &InitialWeights::head), Head::fresh, Head::as_written))),
      may_change(flag({"fresh-weights", group, "", "With an ONNX file: initialize all weights anew"},
                      of(&Recipe::init, &InitialWeights::of_network), WeightsOfNetwork::ignored,
                      WeightsOfNetwork::used)),
      common(one_value({"seed", group, "NUMBER", "Seed of weights, sample order and augmentation"}, of(&Recipe::seed),
                       from_to<std::uint64_t>(0, std::numeric_limits<std::uint64_t>::max()))),
      flag({"zero-init-gamma", group, "",
            "Residual networks: initialize the scale of each block's last batch norm to 0"},
           of(&Recipe::residual_init), ResidualInit::zero_gamma, ResidualInit::standard),
      flag({"dirac-init", group, "",
            "Initialize convolutions so that their first outputs equal their inputs (torch.nn.init.dirac_), if they "
            "have a center and enough outputs"},
           of(&Recipe::filter_init), FilterInit::identity, FilterInit::standard),
      flag({"whiten", group, "",
            "Set the first convolution to filters that whiten its windows, computed from training images, and do not "
            "train it; it needs two outputs for each value of a window (--model airbench)"},
           of(&Recipe::first_convolution), FirstConvolution::whitened, FirstConvolution::trained),
      one_value({"norm-momentum", group, "SHARE",
                 "Weight of a step's batch statistics in the running ones (PyTorch: momentum of batch norms)"},
                of(&Recipe::norm_momentum), NumberForm<float>{{0, 1, LeastIs::excluded}}),
      flag({"blur-pool", group, "",
            "Residual networks: blur before strided convolutions of 16 or more input channels (Zhang 2019); appends "
            "-blur to the model's name"},
           of(&Recipe::blur_pool), BlurPool::before_strides, BlurPool::none),
      one_value({"label-smoothing", group, "SHARE", "Share of the target that is spread over all classes"},
                of(&Recipe::label_smoothing), from_to(0.0F, 0.999F)),
  };
}

std::vector<Field> length_fields() {
  constexpr FieldGroup group = FieldGroup::schedule;
  return {
      may_change(unstated_where(common(one_value({"epochs", group, "EPOCHS", "Passes over the training set"},
                                                 of(&Recipe::epochs), chosen(1, 1000000))),
                                [](const Settings& settings) {
                                  const Recipe& recipe = settings.recipe;
                                  return recipe.max_steps && recipe.epochs.by == ChosenBy::program;
                                })),
      may_change(one_value(
          {"max-steps", group, "STEPS",
           "Stop after this many steps in total; without --epochs, the schedule ends there too (default: by epochs)"},
          of(&Recipe::max_steps), from_to<std::int64_t>(1, 1000000000000))),
      one_value({"test-every", group, "EPOCHS", "Epochs between two tests; the end of the training is always tested"},
                of(&RunOptions::test_every), from_to<std::int64_t>(1, 1000000)),
      may_change(one_value(
          {"early-stop", group, "METRIC:PATIENCE:MIN_DELTA",
           "End after PATIENCE tests in which METRIC did not improve by more than MIN_DELTA. METRIC: test-accuracy, "
           "test-loss, validation-accuracy, validation-loss (default: train to the end)"},
          of(&Recipe::early_stop), EarlyStopForm())),
  };
}

std::vector<Field> batch_fields() {
  constexpr FieldGroup group = FieldGroup::batch;
  return {
      common(one_value({"global-batch", group, "SAMPLES",
                        "Samples per update, over all ranks. The default adapts to the ranks and the data"},
                       of(&Recipe::batch, &BatchOptions::global_batch), chosen(1, max_samples))),
      instead_of(one_value({"batch-per-rank", group, "SAMPLES",
                            "Micro-batch size. Global batch = this x ranks x gradient accumulation steps"},
                           of(&Recipe::batch, &BatchOptions::batch_per_rank), any_count),
                 "global-batch", [](Settings& settings) { settings.recipe.batch.global_batch.reset(); }),
      one_value({"accumulate", group, "STEPS", "Gradient accumulation: micro-batches per rank and step"},
                of(&Recipe::batch, &BatchOptions::accumulate), from_to(1, 65536)),
      common(one_value(
          {"virtual-ranks", group, "COUNT",
           "Cut the global batch into this many micro-batches with reproducible sums: the same weights, bit for "
           "bit, on any number of ranks up to it"},
          of(&Recipe::batch, &BatchOptions::virtual_ranks), from_to(1, 65536))),
      one_value({"sync-batch-norm", group, "RANKS",
                 "CPU: ranks that share batch norm statistics, in groups of neighbors; 0: all ranks, 1: none"},
                of(&Recipe::sync_batch_norm_ranks), from_to(0, 65536)),
  };
}

std::vector<Field> sync_fields() {
  constexpr FieldGroup group = FieldGroup::sync;
  return {
      one_value(
          {"sync", group, "NAME",
           "How ranks keep their weights together. all-reduce: sums of gradients in every update; local: each rank "
           "updates its own weights, and the ranks average them once per step (local SGD, DiLoCo); ps: as all-reduce, "
           "but by parameter servers, which are the last ranks; ps-async: servers apply each gradient at once, and no "
           "trainer waits for another"},
          of(&Recipe::sync), one_of(syncs)),
      read_by(one_value({"servers", group, "RANKS",
                         "With --sync ps and ps-async: parameter servers. They have no samples, add gradients and "
                         "update weights"},
                        of(&RunOptions::sums, &ReducerOptions::servers), from_to(1, 65536)),
              "sync", {"ps", "ps-async"}),
      read_by(
          one_value({"trainers", group, "COUNT",
                     "With --sync ps and ps-async: be the server alone, for this many trainers that are programs of "
                     "their own (--trainer-of) and may come, go and die; 0: the first ranks are trainers. With ps, "
                     "this is the default of --virtual-ranks"},
                    of(&RunOptions::sums, &ReducerOptions::trainers), from_to(0, 65536)),
          "sync", {"ps", "ps-async"}),
      one_value({"trainer-of", group, "FOLDER",
                 "Be a trainer of the server with this --output and --trainers, which decides all that affects the "
                 "weights"},
                of(&RunOptions::trainer_of), NamedFolderForm()),
      read_by(one_value({"lag-ratio", group, "RATIO",
                         "With --sync ps-async: gradients are dropped if more than this many updates per trainer were "
                         "made since the trainer got its weights"},
                        of(&Recipe::lag_ratio), NumberForm<double>{{1, 1000}}),
              "sync", {"ps-async"}),
      read_by(
          one_value({"local-steps", group, "UPDATES",
                     "With --sync local: updates of each rank's own weights per step, each on one micro-batch. With "
                     "--sync ps-async, for example 16: micro-batches per trainer and step, each an update of common "
                     "weights. Steps are counted as a whole"},
                    of(&Recipe::batch, &BatchOptions::local_steps), from_to(1, 65536)),
          "sync", {"local", "ps-async"}),
      read_by(
          one_value({"local-shares", group, "NAME",
                     "With --sync local on CPUs: a step's micro-batches of each rank. equal: the same number on all "
                     "ranks; by-speed: fewer on slower ranks, so that the others do not wait. Two runs then have "
                     "different weights"},
                    of(&Recipe::local_shares), one_of(local_shares)),
          "sync", {"local"}),
      read_by(one_value({"outer-lr", group, "RATE",
                         "With --sync local: rate at which the common weights follow the mean of the ranks' weights"},
                        of(&Recipe::outer, &OuterOptimizer::rate), NumberForm<float>{{0, 2, LeastIs::excluded}}),
              "sync", {"local"}),
      read_by(
          one_value({"outer-momentum", group, "SHARE",
                     "With --sync local: Nesterov momentum of the common weights (DiLoCo: 0.9, with --outer-lr 0.7)"},
                    of(&Recipe::outer, &OuterOptimizer::momentum), from_to(0.0F, 0.9999F)),
          "sync", {"local"}),
      one_value({"compress", group, "METHOD:RANK",
                 "CPU: send gradients as matrices of this rank, from 1 to 64, for slow networks: powersgd:4; none: as "
                 "they are"},
                of(&Recipe::powersgd_rank), CompressionForm()),
  };
}

std::vector<Field> testing_fields() {
  constexpr FieldGroup group = FieldGroup::testing;
  return {one_value({"test-augment", group, "NAME",
                     "Evaluate the mean of the logits of each image and its mirror image (flip), or also of both "
                     "shifted by a pixel (flip-shift)"},
                    of(&RunOptions::test_time_augmentation), one_of(test_augmentations))};
}

std::vector<Field> device_fields() {
  constexpr FieldGroup group = FieldGroup::device;
  return {
      common(one_value({"device", group, "NAME", "Where to compute; auto: on a GPU if there is one"},
                       of(&RunOptions::device, &DeviceChoice::name), one_of(devices))),
      common(one_value(
          {"precision", group, "NAME",
           "Type of activations; weights, statistics and sums are always fp32. fp16 needs a GPU and scales the loss"},
          of(&Recipe::arithmetic, &Arithmetic::precision), one_of(precisions))),
      one_value({"threads", group, "THREADS", "CPU threads per rank; 0: its share of the cores"},
                of(&RunOptions::device, &DeviceChoice::threads), from_to(0, 4096)),
      one_value({"instruction-set", group, "NAME", "CPU: vector instructions; auto: the widest that all ranks support"},
                of(&RunOptions::device, &DeviceChoice::instruction_set), one_of(instruction_sets)),
      one_value({"convolutions", group, "NAME",
                 "CPU: convolution algorithm; auto: Winograd if it is faster, direct: never Winograd"},
                of(&Recipe::arithmetic, &Arithmetic::direct_convolutions), one_of(convolutions)),
      flag({"tf32", group, "", "GPU: fp32 convolutions and matrix products in TF32"},
           of(&Recipe::arithmetic, &Arithmetic::tf32), true, false),
      one_value({"gpu-memory-limit", group, "MIB",
                 "GPU: memory of each rank for tensors, if others use the GPU too; 0: all that is free, or a share"},
                of(&RunOptions::device, &DeviceChoice::gpu_memory_mib), from_to<std::int64_t>(0, 1 << 20)),
      flag({"no-graphs", group, "", "GPU: launch every kernel of a step separately instead of replaying a CUDA graph"},
           of(&RunOptions::device, &DeviceChoice::graphs), false, true),
      flag({"deterministic", group, "",
            "GPU: the same bits in every run; kernels are not timed. --virtual-ranks implies it"},
           of(&RunOptions::device, &DeviceChoice::deterministic), true, false),
      one_value({"plan-folder", group, "FOLDER", "GPU: folder that keeps kernel choices between runs; '': none"},
                of(&RunOptions::device, &DeviceChoice::plan_folder), TextForm()),
      flag({"verbose", group, "", "Print the kernel chosen for each layer and direction"},
           of(&RunOptions::device, &DeviceChoice::verbose), true, false),
  };
}

std::vector<Field> reduction_fields() {
  constexpr FieldGroup group = FieldGroup::reduction;
  return {
      read_by(
          one_value(
              {"reduce", group, "NAME",
               "How gradients are summed: nccl between GPUs, mpi, or shared memory within a node (shared); auto: the "
               "fastest available"},
              of(&RunOptions::sums, &ReducerOptions::reducer), one_of(reducers)),
          "sync", {"all-reduce", "local"}),
      one_value({"bucket-mib", group, "MIB", "Size of a gradient bucket; 0: from measured latency and bandwidth"},
                of(&RunOptions::sums, &ReducerOptions::bucket_mib), from_to<std::int64_t>(0, 1024)),
      flag(
          {"shard-optimizer", group, "",
           "Divide the optimizer state and the EMA among the ranks (ZeRO stage 1): less memory per rank, same weights"},
          of(&RunOptions::sums, &ReducerOptions::shard_optimizer), true, false),
      one_value({"wire", group, "NAME", "Type in which gradients travel between ranks; bf16 needs NCCL"},
                of(&Recipe::wire), one_of(wires)),
  };
}

std::vector<Field> output_fields() {
  constexpr FieldGroup group = FieldGroup::output;
  return {
      common(
          one_value({"output", group, "FOLDER",
                     "Folder for metrics.jsonl, summary.json, model.h5 and checkpoints (default: nothing is written)"},
                    of(&RunOptions::output), NamedFolderForm())),
      one_value({"note", group, "TEXT", "Free text for summary.json, checkpoints and inspect"}, of(&RunOptions::note),
                NoteForm()),
      list_of_values({"tag", group, "KEY=VALUE", "Tag for summary.json, checkpoints and inspect; may be repeated"},
                     of(&RunOptions::tags), TagForm()),
  };
}

std::vector<Field> monitoring_fields() {
  constexpr FieldGroup group = FieldGroup::monitoring;
  return {
      one_value({"report-every", group, "STEPS", "Steps between two lines of the log and of metrics.jsonl"},
                of(&RunOptions::report_every), any_count),
      one_value(
          {"tensorboard", group, "FOLDER", "Also write TensorBoard events to this folder, one folder per training"},
          of(&RunOptions::tensorboard), NamedFolderForm()),
      one_value({"trace", group, "FOLDER",
                 "Write a trace of all ranks to this folder at the end, for Perfetto or chrome://tracing"},
                of(&RunOptions::trace), NamedFolderForm()),
      one_value({"hang-timeout", group, "SECONDS",
                 "End the job if a rank makes no progress for this long, and name it; 0: never"},
                of(&RunOptions::hang_timeout_seconds), from_zero),
      one_value({"audit-every", group, "STEPS", "Steps between two comparisons of all ranks' weights; 0: never"},
                of(&RunOptions::audit_every), any_count_or_none),
  };
}

std::vector<Field> checkpoint_fields() {
  constexpr FieldGroup group = FieldGroup::checkpoints;
  return {
      one_value({"checkpoints", group, "FOLDER", "Folder for checkpoints (default: OUTPUT/checkpoints)"},
                of(&RunOptions::checkpoints, &CheckpointOptions::folder), NamedFolderForm()),
      one_value(
          {"checkpoint-every", group, "INTERVAL",
           "Steps (500), epochs (2epochs) or time (10min) between checkpoints; of several, whichever comes first"},
          of(&RunOptions::checkpoints, &CheckpointOptions::every), IntervalForm()),
      one_value({"keep-latest", group, "COUNT", "Number of newest checkpoints to keep"},
                of(&RunOptions::checkpoints, &CheckpointOptions::keep, &KeepRule::latest), from_to(1, 1000000)),
      one_value({"keep-best", group, "COUNT",
                 "Number of most accurate checkpoints to keep, by validation accuracy, else test accuracy"},
                of(&RunOptions::checkpoints, &CheckpointOptions::keep, &KeepRule::best), from_to(0, 1000000)),
      common(one_value(
          {"resume", group, "auto|never|FILE",
           "auto: resume from the newest checkpoint if there is one; never: start from scratch; or a checkpoint"},
          of(&RunOptions::checkpoints, &CheckpointOptions::resume), NamedFileForm())),
      one_value(
          {"time-limit", group, "TIME",
           "Stop with a checkpoint and code 75 before this time has passed, such as 2h. Slurm's own limit also counts"},
          of(&RunOptions::time_limit_seconds), DurationForm()),
  };
}

std::vector<Field> all_fields() {
  std::vector<Field> fields;
  for (std::vector<Field> group : std::array{
           data_fields(), staging_fields(), augmentation_fields(), resizing_fields(), testing_fields(), model_fields(),
           optimizer_fields(), length_fields(), schedule_fields(), device_fields(), batch_fields(), sync_fields(),
           reduction_fields(), output_fields(), checkpoint_fields(), monitoring_fields()}) {
    std::ranges::move(group, std::back_inserter(fields));
  }
  return fields;
}

}  // namespace

const std::vector<Field>& training_fields() {
  static const std::vector<Field> fields = all_fields();
  return fields;
}

std::string unused_option_message(const Field& field, const Settings& settings) {
  const auto texts_of = [&](const std::string& name) {
    return std::ranges::find(training_fields(), name, &Field::name)->texts(settings);
  };
  if (!field.needs.empty() && texts_of(field.needs).empty()) {
    return fmt::format("it has no effect without --{}. Add that, or leave this out", field.needs);
  }
  if (field.chooser.empty()) return "";
  const std::string chosen = texts_of(field.chooser).front();
  if (std::ranges::find(field.readers, chosen) != field.readers.end()) return "";
  return fmt::format("it has no effect with --{} {}, only with {}. Leave it out", field.chooser, chosen,
                     fmt::join(field.readers, " and "));
}

nlohmann::json json_of(const Settings& settings, Field::Part part) {
  nlohmann::json json = nlohmann::json::object();
  for (const Field& field : training_fields()) {
    if (field.part == part) json[field.name] = json_of(field, settings);
  }
  return json;
}

}  // namespace lockstep
