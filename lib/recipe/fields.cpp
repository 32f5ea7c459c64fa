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
constexpr std::array<Choice<Shuffle>, 2> shuffles{{{"full", Shuffle::full}, {"blocks", Shuffle::blocks}}};
constexpr std::array<Choice<DataPlace>, 3> data_places{
    {{"auto", DataPlace::automatic}, {"device", DataPlace::device}, {"host", DataPlace::host}}};
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
      required(one_value({"data", group, "FOLDER", "Folder made by make_shards, with train/ and test/"},
                         of(&RunOptions::data), TextForm())),
      one_value({"data-on", group, "NAME",
                 "Where a GPU takes samples from: its own memory, the host's, or (auto) its own if they fit well"},
                of(&RunOptions::data_place), one_of(data_places)),
      one_value({"loader-threads", group, "THREADS", "Threads of each rank that read and augment samples"},
                of(&RunOptions::loader_threads), from_to(1, 256)),
      one_value({"shuffle", group, "NAME",
                 "Order of samples: full: any may stand anywhere; blocks: shards are read from beginning to end, a "
                 "piece after another, for data that memory does not hold"},
                of(&Recipe::order, &ShuffleOptions::shuffle), one_of(shuffles)),
      read_by(
          one_value({"shuffle-window", group, "MIB", "Of samples that are shuffled at a time, on all ranks together"},
                    of(&Recipe::order, &ShuffleOptions::window_mib), from_to<std::int64_t>(1, 1 << 20)),
          "shuffle", {"blocks"}),
  };
}

std::vector<Field> staging_fields() {
  return {one_value({"stage", FieldGroup::staging, "FOLDER",
                     "Copy the data into this folder of the node's own disk first, once for all its ranks, and read "
                     "them there; a later start takes what is there. Unset: read them where they are"},
                    of(&RunOptions::stage), NamedFolderForm())};
}

std::vector<Field> view_fields() {
  constexpr FieldGroup group = FieldGroup::views;
  return {
      one_value(
          {"augment", group, "NAME",
           "Changes to training pictures; auto: crop-flip for pixels, resized-crop-flip for JPEG files; digits are "
           "never mirrored"},
          of(&Recipe::images, &ImageOptions::augmentation), one_of(augmentations)),
      read_by(one_value({"crop-area", group, "SHARE",
                         "Least share of a picture's area that a resized crop covers; unset: 0.08"},
                        of(&Recipe::images, &ImageOptions::least_area), from_to(0.001F, 1.0F)),
              "augment", {"auto", "resized-crop", "resized-crop-flip"}),
      one_value(
          {"image-size", group, "PIXELS", "Side of the images that the network is given; unset: as the data set says"},
          of(&Recipe::images, &ImageOptions::side), from_to<std::int64_t>(8, 4096)),
      one_value({"color-jitter", group, "STRENGTHS",
                 "Training pictures change their brightness, contrast and saturation, in an order that is drawn, by "
                 "factors from 1 less this to 1 more, as torchvision's ColorJitter has it; unset: they do not"},
                of(&Recipe::images, &ImageOptions::jitter), ColourJitterForm()),
      one_value({"cutout", group, "PIXELS",
                 "Side of a square, somewhere in each training image, that becomes the mean colour; unset: none"},
                of(&Recipe::images, &ImageOptions::cutout), from_to<std::int64_t>(1, 4096)),
      one_value(
          {"image-size-ramp", group, "FROM:START:END",
           "Training images grow: FROM pixels until START epochs are done, --image-size from END on, in a straight "
           "line in between, to multiples of 32 (or of a fourth number: 24:0:6:4)"},
          of(&Recipe::images, &ImageOptions::ramp), SizeRampForm()),
      one_value({"test-image-size", group, "PIXELS",
                 "Side of the images of tests, which is what the model file says; unset: --image-size"},
                of(&Recipe::images, &ImageOptions::test_side), from_to<std::int64_t>(8, 4096)),
      one_value({"mixup", group, "ALPHA",
                 "Each training image is mixed with another one of the batch, and its label too, by a share from "
                 "Beta(ALPHA, ALPHA); accuracy in training is that of the larger share; unset: none is"},
                of(&Recipe::images, &ImageOptions::mixup), NumberForm<float>{{0, 100, LeastIs::excluded}}),
  };
}

std::vector<Field> picture_fields() {
  constexpr FieldGroup group = FieldGroup::pictures;
  return {
      one_value({"resize", group, "PIXELS",
                 "Shorter side that pictures are resized to before tests take their middle (and crops that are not "
                 "resized their window, in proportion to their size); unset: 8/7 of the images', where pictures have "
                 "other sizes"},
                of(&Recipe::images, &ImageOptions::shorter_side), from_to<std::int64_t>(8, 4096)),
      one_value({"decode", group, "NAME",
                 "JPEG files; auto: scaled: at 1/2, 1/4 or 1/8 of their size where that is enough; exact: as Pillow"},
                of(&Recipe::images, &ImageOptions::decoding), one_of(decodings)),
  };
}

std::vector<Field> model_fields() {
  constexpr FieldGroup group = FieldGroup::model;
  return {
      one_value({"model", group, "NAME", "Network: " + known_models()}, of(&Recipe::model), TextForm()),
      may_change(unstated_where(one_value({"epochs", group, "EPOCHS", "Passes over the training set"},
                                          of(&Recipe::epochs), chosen(1, 1000000)),
                                [](const Settings& settings) {
                                  const Recipe& recipe = settings.recipe;
                                  return recipe.max_steps && recipe.epochs.by == ChosenBy::program;
                                })),
      may_change(one_value({"max-steps", group, "STEPS",
                            "End after so many steps, counted from the training's beginning; without --epochs the "
                            "schedule ends there too; unset: epochs decide"},
                           of(&Recipe::max_steps), from_to<std::int64_t>(1, 1000000000000))),
      one_value({"seed", group, "NUMBER", "Of weights, sample order and augmentation"}, of(&Recipe::seed),
                from_to<std::uint64_t>(0, std::numeric_limits<std::uint64_t>::max())),
      flag({"zero-init-gamma", group, "",
            "Of residual networks: begin with a scale of 0 in the last norm of each block, so that blocks pass on what "
            "they get"},
           of(&Recipe::block_start), BlockStart::identity, BlockStart::whole),
      flag({"blur-pool", group, "",
            "Of residual networks: blur maps before strided convolutions of at least 16 input channels (Zhang 2019); "
            "the model is then called NAME-blur"},
           of(&Recipe::blur_pool), BlurPool::before_strides, BlurPool::none),
      one_value({"sync-batch-norm", group, "RANKS",
                 "On a CPU: so many neighbouring ranks take the statistics of their batch norms together; 0: all; 1: "
                 "each by itself"},
                of(&Recipe::norm_ranks), from_to(0, 65536)),
      one_value({"label-smoothing", group, "SHARE", "Share of the target spread over all classes"},
                of(&Recipe::label_smoothing), from_to(0.0F, 0.999F)),
  };
}

std::vector<Field> batch_fields() {
  constexpr FieldGroup group = FieldGroup::batch;
  return {
      one_value({"global-batch", group, "SAMPLES",
                 "Samples of all ranks in one step; unset: as shown, or less where ranks or data ask for it"},
                of(&Recipe::batch, &BatchOptions::global_batch), chosen(1, most_samples)),
      instead_of(one_value({"batch-per-rank", group, "SAMPLES",
                            "Samples of one part of each rank; the global batch is this x ranks x parts"},
                           of(&Recipe::batch, &BatchOptions::batch_per_rank), any_count),
                 "global-batch", [](Settings& settings) { settings.recipe.batch.global_batch.reset(); }),
      one_value({"accumulate", group, "PARTS", "Parts of each rank in one step, one after another"},
                of(&Recipe::batch, &BatchOptions::accumulate), from_to(1, 65536)),
      one_value({"virtual-ranks", group, "PARTS",
                 "Cut the global batch into so many parts and sum them exactly: the same weights, bit for bit, on any "
                 "number of ranks up to it"},
                of(&Recipe::batch, &BatchOptions::virtual_ranks), from_to(1, 65536)),
  };
}

std::vector<Field> testing_fields() {
  constexpr FieldGroup group = FieldGroup::testing;
  return {flag({"test-flip", group, "", "Test by the mean of logits of each picture and its mirror image"},
               of(&RunOptions::test_time_augmentation), TestTimeAugmentation::flip, TestTimeAugmentation::plain)};
}

std::vector<Field> device_fields() {
  constexpr FieldGroup group = FieldGroup::device;
  return {
      one_value({"device", group, "NAME", "Where to compute"}, of(&RunOptions::device, &DeviceChoice::name),
                one_of(devices)),
      one_value(
          {"precision", group, "NAME",
           "Of activations; weights, statistics and sums are fp32 in any case. fp16: on a GPU, with loss scaling"},
          of(&Recipe::arithmetic, &Arithmetic::precision), one_of(precisions)),
      one_value({"threads", group, "THREADS", "Threads of each rank; 0: its share of the cores it may use"},
                of(&RunOptions::device, &DeviceChoice::threads), from_to(0, 4096)),
      one_value({"instruction-set", group, "NAME",
                 "On a CPU: vectors to compute with; auto: the best that the processor has"},
                of(&RunOptions::device, &DeviceChoice::instruction_set), one_of(instruction_sets)),
      one_value({"convolutions", group, "NAME", "On a CPU: auto: by Winograd where that is faster; direct: nowhere"},
                of(&Recipe::arithmetic, &Arithmetic::direct_convolutions), one_of(convolutions)),
      flag({"tf32", group, "", "On a GPU: fp32 convolutions and products in TF32, of 10 bits"},
           of(&Recipe::arithmetic, &Arithmetic::tf32), true, false),
      flag({"no-graphs", group, "", "On a GPU: queue every call of a step anew instead of recording the step once"},
           of(&RunOptions::device, &DeviceChoice::graphs), false, true),
      flag({"deterministic", group, "",
            "On a GPU: the same bits in every run; no kernel is timed. --virtual-ranks does so anyway"},
           of(&RunOptions::device, &DeviceChoice::deterministic), true, false),
      one_value({"plan-folder", group, "FOLDER", "On a GPU: where kernel choices are kept between runs; '': nowhere"},
                of(&RunOptions::device, &DeviceChoice::plan_folder), TextForm()),
      flag({"verbose", group, "", "Print the kernel chosen for each layer and direction"},
           of(&RunOptions::device, &DeviceChoice::verbose), true, false),
  };
}

std::vector<Field> sum_fields() {
  constexpr FieldGroup group = FieldGroup::sums;
  return {
      one_value({"reduce", group, "NAME",
                 "How gradients are summed over ranks; nccl: between GPUs; shared: through memory, on one node"},
                of(&RunOptions::sums, &ReducerOptions::reducer), one_of(reducers)),
      one_value({"bucket-mib", group, "MIB",
                 "Gradients that are summed in one go; 0: as latency and bandwidth, measured at the start, suggest"},
                of(&RunOptions::sums, &ReducerOptions::bucket_mib), from_to<std::int64_t>(0, 1024)),
      one_value({"wire", group, "NAME", "Precision in which gradients travel between ranks; bf16 with NCCL only"},
                of(&Recipe::wire), one_of(wires)),
  };
}

std::vector<Field> output_fields() {
  constexpr FieldGroup group = FieldGroup::output;
  return {
      one_value(
          {"output", group, "FOLDER", "Folder for metrics.jsonl, summary.json and model.h5; unset: none is written"},
          of(&RunOptions::output), NamedFolderForm()),
      one_value({"tensorboard", group, "FOLDER",
                 "Also write what TensorBoard shows into this folder, one for each training: loss, accuracy, learning "
                 "rate, throughput, options; unset: none"},
                of(&RunOptions::tensorboard), NamedFolderForm()),
      one_value(
          {"trace", group, "FOLDER",
           "Write a trace of all ranks into this folder when the training ends or is stopped: what each did when, "
           "for Perfetto (ui.perfetto.dev) or chrome://tracing; unset: none"},
          of(&RunOptions::trace), NamedFolderForm()),
      one_value(
          {"note", group, "TEXT", "What this training is, in your words: for summary.json, checkpoints and inspect"},
          of(&RunOptions::note), NoteForm()),
      list_of_values(
          {"tag", group, "KEY=VALUE", "Likewise: a word to find this training by; may be given several times"},
          of(&RunOptions::tags), TagForm()),
      one_value({"report-every", group, "STEPS", "Steps between two lines of a log file and of metrics.jsonl"},
                of(&RunOptions::report_every), any_count),
  };
}

std::vector<Field> watch_fields() {
  constexpr FieldGroup group = FieldGroup::watch;
  return {
      one_value({"hang-timeout", group, "SECONDS",
                 "A rank that gets no further for so long is named and ends the job; 0: never"},
                of(&RunOptions::hang_timeout_seconds), from_zero),
      one_value({"audit-every", group, "STEPS",
                 "Steps between two comparisons of all ranks' weights; a rank that deviates ends the job; 0: never"},
                of(&RunOptions::audit_every), any_count_or_none),
  };
}

std::vector<Field> checkpoint_fields() {
  constexpr FieldGroup group = FieldGroup::checkpoints;
  return {
      one_value({"checkpoints", group, "FOLDER", "Folder for checkpoints; unset: OUTPUT/checkpoints"},
                of(&RunOptions::checkpoints, &CheckpointOptions::folder), TextForm()),
      one_value({"checkpoint-every", group, "INTERVAL",
                 "Steps (500), epochs (2epochs) or time (10min) between checkpoints; of several, the first to pass "
                 "counts"},
                of(&RunOptions::checkpoints, &CheckpointOptions::every), IntervalForm()),
      one_value({"keep-latest", group, "COUNT", "Checkpoints that are kept because they are the newest"},
                of(&RunOptions::checkpoints, &CheckpointOptions::keep, &KeepRule::latest), from_to(1, 1000000)),
      one_value({"keep-best", group, "COUNT",
                 "Checkpoints that are kept because their accuracy is the best: on the validation split, or else on "
                 "the test split"},
                of(&RunOptions::checkpoints, &CheckpointOptions::keep, &KeepRule::best), from_to(0, 1000000)),
      one_value({"resume", group, "auto|never|FILE",
                 "auto: go on from the newest checkpoint, if there is one; never: begin anew; or a checkpoint's file"},
                of(&RunOptions::checkpoints, &CheckpointOptions::resume), TextForm()),
      // The initial weights have no effect on a resumed training.
      may_change(one_value({"init-from", group, "FILE",
                            "Begin with the weights in this file: of ours, or of another program (safetensors, HDF5)"},
                           of(&Recipe::init, &InitialWeights::file), TextForm())),
      may_change(needs(flag({"new-head", group, "", "With --init-from: not those of the last layer, for other classes"},
                            of(&Recipe::init, &InitialWeights::head), Head::fresh, Head::as_written),
                       "init-from")),
      one_value({"time-limit", group, "TIME",
                 "Stop with a checkpoint and code 75 before so much time has passed; Slurm's own limit counts in any "
                 "case"},
                of(&RunOptions::time_limit_seconds), DurationForm()),
  };
}

std::vector<Field> all_fields() {
  std::vector<Field> fields;
  for (std::vector<Field> group :
       std::array{data_fields(), staging_fields(), view_fields(), picture_fields(), model_fields(), batch_fields(),
                  optimizer_fields(), schedule_fields(), testing_fields(), device_fields(), sum_fields(),
                  output_fields(), watch_fields(), checkpoint_fields()}) {
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
  if (field.chooser.empty()) return "";
  const auto chooser = std::ranges::find(training_fields(), field.chooser, &Field::name);
  const std::string chosen = chooser->texts(settings).front();
  if (std::ranges::find(field.readers, chosen) != field.readers.end()) return "";
  return fmt::format("--{} {} does not read it ({} {}). Leave it out", field.chooser, chosen,
                     fmt::join(field.readers, " and "), field.readers.size() == 1 ? "does" : "do");
}

nlohmann::json json_of(const Settings& settings, Field::Part part) {
  nlohmann::json json = nlohmann::json::object();
  for (const Field& field : training_fields()) {
    if (field.part == part) json[field.name] = json_of(field, settings);
  }
  return json;
}

}  // namespace lockstep
