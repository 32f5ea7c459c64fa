// What decides the weights that a training ends with: the same recipe on the same data gives the same ones. Where it
// runs, what it writes and whom it asks is a RunOptions (recipe/run_options.hpp).
//
// Each member is an option, a field of a checkpoint's recipe and one of summary.json by one entry in recipe/fields.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "dataset/loading/augment.hpp"
#include "dataset/loading/loader.hpp"
#include "dataset/shards/manifest.hpp"
#include "device/device.hpp"
#include "models/model_zoo.hpp"
#include "optim/lr_schedule.hpp"
#include "optim/optimizer_options.hpp"
#include "recipe/size_ramp.hpp"

namespace lockstep {

// A number, and who chose it. A program's own choice gives way where it does not fit: a global batch to ranks and data,
// epochs to --max-steps. A user's is kept, or refused.
enum class ChosenBy : std::uint8_t { user, program };
struct ChosenNumber {
  std::int64_t value = 0;
  ChosenBy by = ChosenBy::user;
};

// How the global batch is stated: whole, or as each rank's micro-batch. Exactly one of the first two is set.
struct BatchOptions {
  std::optional<ChosenNumber> global_batch;
  std::optional<std::int64_t> batch_per_rank;  // of one micro-batch
  int accumulate = 1;                          // micro-batches a rank carries in each step
  std::optional<int> virtual_ranks = {};       // equal micro-batches of the global batch, whatever the number of ranks
};

// How sums over micro-batches and ranks are rounded.
enum class Sums : std::uint8_t {
  rounded,       // fp32: the last bits depend on who added what first
  reproducible,  // whole numbers, which do not: the same bits on any number of ranks that carry the same micro-batches
};

// How gradients are summed over ranks.
struct AllReduceOptions {
  std::string reducer = "auto";         // auto | nccl | mpi | shared
  std::int64_t bucket_bytes = 4 << 20;  // 0: by the latency and bandwidth of sums, measured at the start
  Sums sums = Sums::rounded;
  DType wire = DType::f32;  // or bf16 (NCCL): the precision in which gradients travel; the last bucket's is fp32
};

struct LearningRate {
  double rate = 0.1;              // the peak, for a global batch of base_batch; grows in proportion to the global batch
  std::int64_t base_batch = 128;  // 0: the rate is taken as it is
  Schedule schedule = Schedule::one_cycle;
  std::optional<double> warmup_epochs;  // none stated: a fifth of the training for one_cycle, else none
  std::vector<double> milestones;       // epochs, for Schedule::step
  double factor = 0.1;                  // at each milestone
  double power = 2;                     // of Schedule::poly
  double end = 0;                       // of Schedule::cosine and poly, whatever the batch
  std::optional<double> warmup_from;    // share of the rate; none stated: one step's share of it
};

enum class OptimizerKind : std::uint8_t { sgd, lars, adamw };

// Each optimizer reads its own: which of them does stands with the fields.
struct OptimizerChoice {
  OptimizerKind kind = OptimizerKind::sgd;
  float momentum = 0.9F;
  Momentum momentum_kind = Momentum::classic;
  float weight_decay = 5e-4F;
  DecayScope decay_scope = DecayScope::all;
  float trust = 0.001F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  std::optional<float> clip_norm;  // of all gradients; none stated: they are taken as they are
};

// The mean of weights over steps.
struct EmaOptions {
  std::optional<double> decay;  // none stated: no mean is kept
  std::int64_t every = 1;       // applied steps
};

// How a device is to round.
struct Arithmetic {
  DType precision = DType::f32;  // of activations
  bool tf32 = false;             // GPU: for products of fp32 operands
  bool direct_convolutions = false;
};

enum class BlurPool : std::uint8_t { none, before_strides };

enum class Head { as_written, fresh };

// Weights from a file in place of random ones.
struct InitialWeights {
  std::filesystem::path file;    // a model file or a checkpoint; empty: random ones
  Head head = Head::as_written;  // of the file's last layer
};

// What a network is shown of each picture. What is not stated follows from the data set.
struct ImageOptions {
  std::optional<std::int64_t> side;          // of an image, in pixels; none: the images of the data set
  std::optional<Augmentation> augmentation;  // none: by how samples are stored, and their kind
  std::optional<float> least_area;           // of a resized crop; none: ImageRules's
  std::optional<std::int64_t> shorter_side;  // that pictures are resized to for tests; none: 8/7 of theirs where needed
  std::optional<Decoding> decoding;          // of JPEG files; none: ImageRules's
  std::optional<ColourJitter> jitter;        // none: colours stay
  std::optional<std::int64_t> cutout;        // side of the square that is erased, in pixels; none: nothing is
  std::optional<SizeRamp> ramp;              // of images in training, up to `side`; none: they have it from the start
  std::optional<std::int64_t> test_side;     // of an image in tests; none: as at the end of the training
  std::optional<float> mixup;                // alpha of the shares that two images are mixed by; none: they are not
};

enum class Shuffle : std::uint8_t {
  full,    // any sample may stand anywhere in an epoch
  blocks,  // shards are read from beginning to end, a piece after another (dataset/loading/block_order.hpp)
};

// The order of samples in an epoch.
struct ShuffleOptions {
  Shuffle shuffle = Shuffle::full;
  std::int64_t window_mib = 1024;  // with Shuffle::blocks: what is shuffled at a time, of all ranks together
};

struct Recipe {
  std::string model;
  ChosenNumber epochs{1};
  std::optional<std::int64_t> max_steps;  // after which the training ends, counted from its beginning; none: by epochs
  std::uint64_t seed = 0;
  BatchOptions batch;
  LearningRate learning_rate;
  OptimizerChoice optimizer;
  EmaOptions ema;
  BlockStart block_start = BlockStart::whole;
  BlurPool blur_pool = BlurPool::none;
  int norm_ranks = 1;  // whose batch norms take their statistics together; 0: all
  float label_smoothing = 0;
  ImageOptions images;
  ShuffleOptions order;
  Arithmetic arithmetic;
  DType wire = DType::f32;  // or bf16 (NCCL): the precision in which gradients travel; the last bucket's is fp32
  InitialWeights init;
};

// The model's name for make_model().
std::string model_name(const Recipe& recipe);

inline Sums sums_of(const Recipe& recipe) { return recipe.batch.virtual_ranks ? Sums::reproducible : Sums::rounded; }

// The plan with a batch that the program chose fitted to `ranks` and to so many training samples: as many as it has, or
// the next smaller number of them that divides into the micro-batches; at least one for each micro-batch. Throws
// Error(usage) where there are fewer samples than micro-batches.
BatchOptions fitted(BatchOptions options, int ranks, std::int64_t samples);

// What `rank` of `ranks` carries: micro-batches as equal in number as can be. Throws Error(usage) where the global
// batch does not divide into equal micro-batches, naming the nearest that do, and where ranks would have none.
LoaderShare loader_share(const BatchOptions& options, int rank, int ranks);

// None where any sample may stand anywhere.
std::optional<BlockShuffle> block_shuffle(const ShuffleOptions& options, const Manifest& data,
                                          std::int64_t global_batch);

// How many consecutive ranks take the statistics of their norms together; 1: each micro-batch has its own. With several
// micro-batches a rank it is first with first, second with second. Throws Error(usage) where ranks do not divide into
// such groups, and where virtual ranks of a group would not go forward at the same time.
int norm_group_size(const Recipe& recipe, const LoaderShare& share, int ranks);

// The steps over which the rate takes its course: of all epochs, or as many as --max-steps says where only that is
// stated. A training may end before.
std::int64_t schedule_steps(const Recipe& recipe, std::int64_t steps_per_epoch);
// The schedule of so many steps. Throws Error(usage) on a warm-up longer than that.
LrSchedule make_schedule(const LearningRate& rate, std::int64_t global_batch, std::int64_t steps,
                         std::int64_t steps_per_epoch);
// The options of the optimizer that the plan names.
OptimizerOptions optimizer_options(const OptimizerChoice& options);

// How the mean follows, from the end of the warm-up on; nothing where none is kept.
std::optional<EmaRule> ema_rule(const Recipe& recipe, std::int64_t steps_per_epoch);

// The peak rate for `global_batch`.
double scaled_rate(const LearningRate& rate, std::int64_t global_batch);

// The shorter side of pictures whose middle of `side` pixels is looked at: 256 for 224, as torchvision's tests have it.
std::int64_t side_with_margin(std::int64_t side);

// Throws Error(usage) on a ramp of images without an end, or one that falls.
void require_ramp_grows(const ImageOptions& options);

// Every choice made for these data, in tests and in an epoch of training. Pictures are cropped and mirrored, digits
// only cropped: a mirrored digit is another one. Crops are resized where samples are JPEG files. Pictures that have not
// the size of images are resized before a window is taken: JPEG files, and others where the plan asks for images of
// another size than the data set's. A shorter side that the plan states is that of tests; in training it is in
// proportion to the images. Both throw as require_ramp_grows().
ImageRules test_rules(const ImageOptions& options, const Manifest& data);
ImageRules training_rules(const ImageOptions& options, const Manifest& data, std::int64_t epoch);
// Sizes of the images of so many epochs, each once, the smallest first. Throws as training_rules().
std::vector<PictureSize> training_sizes(const ImageOptions& options, const Manifest& data, std::int64_t epochs);

}  // namespace lockstep
