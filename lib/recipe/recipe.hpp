// The recipe: everything that determines the trained weights. The same recipe on the same data gives the same weights.
// RunOptions (recipe/run_options.hpp) holds where a training runs and what it writes.
//
// One entry in recipe/fields.cpp makes each member an option, a field in checkpoints and a field of summary.json.
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
#include "recipe/early_stop.hpp"
#include "recipe/size_ramp.hpp"

namespace lockstep {

// A number and who chose it. A program's choice is adjusted if it does not fit: the global batch to ranks and data,
// epochs to --max-steps. A user's choice is used as it is, or refused.
enum class ChosenBy : std::uint8_t { user, program };
struct ChosenNumber {
  std::int64_t value = 0;
  ChosenBy by = ChosenBy::user;
};

// The batch size of an update, given as the global batch or as the micro-batch size of each rank. Exactly one of the
// first two is set.
struct BatchOptions {
  std::optional<ChosenNumber> global_batch;
  std::optional<std::int64_t> batch_per_rank;  // size of one micro-batch
  int accumulate = 1;                          // gradient accumulation steps: micro-batches per rank in each step
  std::optional<int> virtual_ranks = {};  // number of equal micro-batches in a global batch, for any number of ranks
  // Micro-batches per trainer in a step, each of which is an update: of the rank's own weights with Sync::local, of the
  // common ones with Sync::async_servers, where ranks take them as they are ready.
  int local_steps = 1;
};

// How ranks keep their weights together (step/weight_sync.hpp).
enum class Sync : std::uint8_t {
  all_reduce,     // each update is of common weights, by the gradients of all ranks
  local,          // each rank updates its own weights, and then their mean is taken
  servers,        // as all_reduce, but some ranks have no samples, and only they add gradients and update weights
  async_servers,  // likewise, but each gradient is an update of its own, and nobody waits for other ranks
};

// How many of a step's micro-batches each rank takes with Sync::local.
enum class LocalShares : std::uint8_t {
  equal,     // the same number on every rank
  by_speed,  // as many as its speed in the steps before allows
};

// The optimizer of the common weights with Sync::local: SGD with Nesterov momentum, without weight decay.
struct OuterOptimizer {
  float rate = 1;
  float momentum = 0;
};

// Of step/local_sync.hpp.
struct LocalUpdates {
  int updates = 1;  // of each rank's own weights in a step; by speed: on average
  float outer_rate = 1;
  float outer_momentum = 0;
  LocalShares shares = LocalShares::equal;
};

// Of step/async_sync.hpp.
struct AsyncUpdates {
  double lag_ratio = 1.5;  // limit of a gradient's age, in updates per trainer
};

// Rounding of sums over micro-batches and ranks.
enum class Sums : std::uint8_t {
  rounded,       // fp32: the last bits depend on the order of summation
  reproducible,  // fixed point: the result does not depend on the number of ranks, if the micro-batches are the same
};

// How gradients are reduced over ranks.
struct AllReduceOptions {
  std::string reducer = "auto";         // auto | nccl | mpi | shared
  std::int64_t bucket_bytes = 4 << 20;  // 0: chosen from the latency and bandwidth measured at the start
  Sums sums = Sums::rounded;
  DType wire = DType::f32;  // or bf16 (NCCL): the precision in which gradients are sent; the last bucket is always fp32
  int servers = 0;          // the last ranks, which add and update for all (comm/server_all_reducer.hpp); 0: all do
  int powersgd_rank = 0;    // of the approximations of gradients (comm/power_sgd_reducer.hpp); 0: exact sums
};

// Exponential moving average of the weights; see EmaRule.
struct EmaOptions {
  std::optional<double> decay;  // unset: no EMA is kept
  std::int64_t every = 1;       // number of applied steps between two updates
  int ramp_power = 0;           // of the decay's growth over the training; 0: it is constant
  bool leads = false;
};

// Arithmetic of the device.
struct Arithmetic {
  DType precision = DType::f32;  // of activations
  bool tf32 = false;             // GPU: TF32 for products of fp32 operands
  bool direct_convolutions = false;
};

enum class BlurPool : std::uint8_t { none, before_strides };

// `whitened`: it makes the values of its windows uncorrelated, and is not trained (train/pretrained/whitening.hpp).
enum class FirstConvolution : std::uint8_t { trained, whitened };

enum class Head { as_written, fresh };

// Weights in the ONNX file that describes a network.
enum class WeightsOfNetwork { used, ignored };

// Initial weights from a file, instead of random initialization.
struct InitialWeights {
  std::filesystem::path file;    // a model file or a checkpoint; empty: random initialization
  Head head = Head::as_written;  // `as_written` loads the last layer from the file, `fresh` initializes it randomly
  WeightsOfNetwork of_network = WeightsOfNetwork::used;
};

// Preprocessing of images. Unset members get their default from the data set.
struct ImageOptions {
  std::optional<std::int64_t> side;          // image size in pixels; unset: that of the data set
  std::optional<Augmentation> augmentation;  // unset: chosen by storage format and kind of samples
  std::optional<std::int64_t> shorter_side;  // shorter side of the resized picture in tests; unset: 8/7 of the image
                                             // side if pictures must be resized
  std::optional<Decoding> decoding;          // of JPEG files; unset: default of ImageRules
  std::optional<SizeRamp> ramp;              // size of training images, growing to `side`; unset: always `side`
  std::optional<std::int64_t> test_side;     // image size in tests; unset: the size at the end of the training
  RandomTransforms transforms;               // passed on to the loader as they are
};

enum class Shuffle : std::uint8_t {
  full,    // a full permutation of the samples
  blocks,  // shards are read sequentially, block by block (dataset/loading/block_order.hpp)
};

// The order of samples in an epoch.
struct ShuffleOptions {
  Shuffle shuffle = Shuffle::full;
  std::int64_t window_mib = 1024;  // with Shuffle::blocks: size of the shuffle window, over all ranks
};

struct Recipe {
  std::string model;
  ChosenNumber epochs{1};
  std::optional<std::int64_t> max_steps;  // limit on total steps over all attempts; unset: given by `epochs`
  std::optional<EarlyStop> early_stop;    // unset: the training ends as the two above say
  std::uint64_t seed = 0;
  BatchOptions batch;
  Sync sync = Sync::all_reduce;
  double lag_ratio = AsyncUpdates().lag_ratio;
  OuterOptimizer outer;
  LocalShares local_shares = LocalShares::equal;
  LearningRate learning_rate;
  OptimizerOptions optimizer;
  EmaOptions ema;
  ResidualInit residual_init = ResidualInit::standard;
  FilterInit filter_init = FilterInit::standard;
  FirstConvolution first_convolution = FirstConvolution::trained;
  BlurPool blur_pool = BlurPool::none;
  float norm_momentum = 0.1F;     // weight of a step's batch statistics in the running ones
  int sync_batch_norm_ranks = 1;  // number of ranks that share batch-norm statistics; 0: all
  float label_smoothing = 0;
  ImageOptions images;
  ShuffleOptions order;
  Arithmetic arithmetic;
  DType wire = DType::f32;  // or bf16 (NCCL): the precision in which gradients are sent; the last bucket is always fp32
  int powersgd_rank = 0;    // of the low-rank approximations of gradients that are sent; 0: the gradients are sent
  InitialWeights init;
};

// Name of the model for make_model().
std::string model_name(const Recipe& recipe);

// std::nullopt unless each rank updates weights of its own.
std::optional<LocalUpdates> local_updates(const Recipe& recipe);
// std::nullopt unless each gradient is an update of its own.
std::optional<AsyncUpdates> async_updates(const Recipe& recipe);

inline Sums sums_of(const Recipe& recipe) { return recipe.batch.virtual_ranks ? Sums::reproducible : Sums::rounded; }

// Adjusts a global batch that the program chose to `ranks` and `samples`. It is limited so that a step has at most the
// training samples, rounded down to a multiple of the number of micro-batches, and holds at least one sample per
// micro-batch. Throws Error(usage) if there are fewer samples than micro-batches.
BatchOptions fit_global_batch(BatchOptions options, int ranks, std::int64_t samples);

// The micro-batches of `rank`; ranks get equal numbers, which differ by at most one with virtual ranks. Throws
// Error(usage) if the global batch does not divide into equal micro-batches, naming the nearest that do, and if a rank
// would have none.
LoaderShare loader_share(const BatchOptions& options, int rank, int ranks);
// The same if the last `servers` of `ranks` ranks have no samples.
LoaderShare loader_share(const BatchOptions& options, int rank, int ranks, int servers);

// std::nullopt for a full shuffle.
std::optional<BlockShuffle> block_shuffle(const ShuffleOptions& options, const Manifest& data,
                                          std::int64_t global_batch);

// Number of consecutive ranks that share batch-norm statistics; 1: each micro-batch has its own. If ranks have several
// micro-batches, those with the same index are grouped. Throws Error(usage) if ranks do not divide into such groups, or
// if virtual ranks of a group would not run at the same time.
int norm_group_size(const Recipe& recipe, const LoaderShare& share, int ranks);

// Length of the learning-rate schedule: all epochs, or --max-steps if only that is given. A training may end earlier.
std::int64_t schedule_steps(const Recipe& recipe, std::int64_t steps_per_epoch);

// EMA updates, which begin after the warm-up; std::nullopt if no EMA is kept.
std::optional<EmaRule> ema_rule(const Recipe& recipe, std::int64_t steps_per_epoch);

// Shorter side of the resized picture before a center crop of `side` pixels: 256 for 224, as in torchvision.
std::int64_t side_with_margin(std::int64_t side);

// Throws Error(usage) if a ramp has no final size or shrinks images.
void require_ramp_grows(const ImageOptions& options);

// Throws Error(usage) if a shorter side that the user states is smaller than that of the image, which resized pictures
// would not cover.
void require_resize_covers(std::int64_t shorter_side, const PictureSize& image);

// Image rules for these data, with all defaults filled in, in tests and in an epoch of training. Both throw as
// require_ramp_grows() and require_resize_covers(). Defaults:
// - Augmentation: pictures are cropped and mirrored, digits only cropped, because a mirrored digit is not the same
//   class. JPEG samples use resized crops.
// - Resizing before the crop: JPEG files, and other samples if `options` asks for another image size than the data
//   set's.
// - Shorter side: a given value applies to tests. In training it is scaled in proportion to the image size.
ImageRules test_rules(const ImageOptions& options, const Manifest& data);
ImageRules training_rules(const ImageOptions& options, const Manifest& data, std::int64_t epoch);
// Image sizes over `epochs` epochs, without duplicates, in ascending order. Throws as training_rules().
std::vector<PictureSize> training_sizes(const ImageOptions& options, const Manifest& data, std::int64_t epochs);

}  // namespace lockstep
