#include "recipe/recipe.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/text/counted.hpp"

namespace lockstep {

namespace {

void require_batch(const char* option, std::int64_t samples) {
  require(samples >= 1 && samples <= std::int64_t{1} << 31, Failure::usage,
          "{} is {}. A batch has at least 1 sample and at most 2^31 samples.", option, samples);
}

// Throws unless `global` is divisible by `micro_batches`. `origin` describes where that number comes from.
void require_divides(std::int64_t global, std::int64_t micro_batches, const std::string& origin) {
  if (global % micro_batches == 0) return;
  const std::int64_t below = global / micro_batches * micro_batches;
  const std::string nearest =
      below == 0 ? fmt::format("{}", micro_batches) : fmt::format("{} or {}", below, below + micro_batches);
  throw Error(Failure::usage,
              fmt::format("--global-batch {} is not divisible by {} micro-batches ({}). Nearest valid size: {}.",
                          global, micro_batches, origin, nearest));
}

LoaderShare share_of_virtual_ranks(const BatchOptions& options, int rank, int ranks) {
  const int micro_batches = *options.virtual_ranks;
  require(options.accumulate == 1, Failure::usage,
          "--virtual-ranks and --accumulate {} both define how the global batch is divided. Leave out --accumulate: "
          "each rank runs its virtual ranks one after another.",
          options.accumulate);
  require(options.global_batch.has_value(), Failure::usage,
          "--batch-per-rank depends on the number of ranks, but results with --virtual-ranks must not. Use "
          "--global-batch.");
  require_batch("--global-batch", options.global_batch->value);
  require(ranks <= micro_batches, Failure::usage,
          "{} ranks cannot share {}, because each virtual rank runs on one rank. Start at most {}, or raise "
          "--virtual-ranks.",
          ranks, counted(micro_batches, "virtual rank"), micro_batches);
  require_divides(options.global_batch->value, micro_batches, "virtual ranks");
  const auto first_of = [&](std::int64_t one) { return static_cast<int>(one * micro_batches / ranks); };
  return {options.global_batch->value, micro_batches, first_of(rank), first_of(rank + 1) - first_of(rank)};
}

}  // namespace

std::string model_name(const Recipe& recipe) {
  return recipe.blur_pool == BlurPool::none ? recipe.model : with_blur(recipe.model);
}

std::optional<LocalUpdates> local_updates(const Recipe& recipe) {
  if (recipe.sync != Sync::local) return std::nullopt;
  return LocalUpdates{recipe.batch.local_steps, recipe.outer.rate, recipe.outer.momentum, recipe.local_shares};
}

std::optional<AsyncUpdates> async_updates(const Recipe& recipe) {
  if (recipe.sync != Sync::async_servers) return std::nullopt;
  return AsyncUpdates{recipe.lag_ratio};
}

BatchOptions fit_global_batch(BatchOptions options, int ranks, std::int64_t samples) {
  if (!options.global_batch || options.global_batch->by == ChosenBy::user) return options;
  const std::int64_t micro_batches = options.virtual_ranks.value_or(ranks * std::max(options.accumulate, 1));
  require(micro_batches <= samples, Failure::usage,
          "{} micro-batches cannot share a training set of {} samples. Each needs at least one sample per step. {}.",
          micro_batches, samples,
          options.virtual_ranks     ? "Lower --virtual-ranks"
          : options.accumulate == 1 ? "Start fewer ranks"
                                    : "Start fewer ranks, or lower --accumulate");
  const std::int64_t most =
      std::max(std::min(options.global_batch->value, samples / options.local_steps), micro_batches);
  options.global_batch->value = most / micro_batches * micro_batches;
  return options;
}

LoaderShare loader_share(const BatchOptions& options, int rank, int ranks) {
  if (options.virtual_ranks) return share_of_virtual_ranks(options, rank, ranks);
  require(options.accumulate >= 1, Failure::usage, "--accumulate is {}. It must be at least 1.", options.accumulate);
  const std::int64_t micro_batches = static_cast<std::int64_t>(ranks) * options.accumulate;
  const std::int64_t stated = options.global_batch ? options.global_batch->value : options.batch_per_rank.value_or(0);
  require_batch(options.global_batch ? "--global-batch" : "--batch-per-rank", stated);
  const std::int64_t global = options.global_batch ? stated : stated * micro_batches;
  require_divides(
      global, micro_batches,
      fmt::format("{} x {}", counted(ranks, "rank"), counted(options.accumulate, "gradient accumulation step")));
  const int rounds = options.local_steps;
  const int per_rank = options.accumulate * rounds;
  return {global * rounds, static_cast<int>(micro_batches * rounds), rank * per_rank, per_rank, rounds, rounds};
}

LoaderShare loader_share(const BatchOptions& options, int rank, int ranks, int servers) {
  const int trainers = ranks - servers;
  if (rank < trainers) return loader_share(options, rank, trainers);
  LoaderShare share = loader_share(options, 0, trainers);
  share.first_micro_batch = share.total_micro_batches;
  share.micro_batches = 0;
  return share;
}

std::optional<BlockShuffle> block_shuffle(const ShuffleOptions& options, const Manifest& data,
                                          std::int64_t global_batch) {
  constexpr std::int64_t mebibyte = 1 << 20;
  if (options.shuffle == Shuffle::full) return std::nullopt;
  return block_shuffle(data, global_batch, options.window_mib * mebibyte);
}

int norm_group_size(const Recipe& recipe, const LoaderShare& share, int ranks) {
  if (recipe.sync_batch_norm_ranks == 1) return 1;
  const int size = recipe.sync_batch_norm_ranks == 0 ? ranks : recipe.sync_batch_norm_ranks;
  require(!recipe.batch.virtual_ranks || share.total_micro_batches == ranks, Failure::usage,
          "{} cannot run {} virtual ranks with --sync-batch-norm. Virtual ranks with shared statistics run at the same "
          "time, each on its own rank. Start {}, or leave out --sync-batch-norm.",
          counted(ranks, "rank"), share.total_micro_batches, counted(share.total_micro_batches, "rank"));
  require(ranks % size == 0, Failure::usage,
          "--sync-batch-norm {} does not divide {} into equal groups. Choose a divisor, or 0 for all ranks.", size,
          counted(ranks, "rank"));
  return size;
}

std::int64_t schedule_steps(const Recipe& recipe, std::int64_t steps_per_epoch) {
  const bool is_by_steps = recipe.max_steps && recipe.epochs.by == ChosenBy::program;
  return is_by_steps ? *recipe.max_steps : recipe.epochs.value * steps_per_epoch;
}

std::optional<EmaRule> ema_rule(const Recipe& recipe, std::int64_t steps_per_epoch) {
  if (!recipe.ema.decay) return std::nullopt;
  const std::int64_t warmup =
      warmup_steps(recipe.learning_rate, schedule_steps(recipe, steps_per_epoch), steps_per_epoch);
  return EmaRule{static_cast<float>(1 - *recipe.ema.decay), recipe.ema.every,      std::max(warmup, recipe.ema.every),
                 schedule_steps(recipe, steps_per_epoch),   recipe.ema.ramp_power, recipe.ema.leads};
}

std::int64_t side_with_margin(std::int64_t side) { return side * 8 / 7; }

namespace {

PictureSize size_of(const std::optional<std::int64_t>& side, const Manifest& data) {
  return side ? PictureSize{*side, *side} : PictureSize{data.shape.height, data.shape.width};
}

std::int64_t shorter(const PictureSize& size) { return std::min(size.height, size.width); }

std::optional<std::int64_t> side_of_tests(const ImageOptions& options) {
  return options.test_side ? options.test_side : options.side;
}

ImageRules rules_of_size(const ImageOptions& options, const Manifest& data, const PictureSize& size) {
  ImageRules rules;
  rules.size = size;
  const bool is_jpeg = data.store == SampleStore::jpeg;
  const bool is_digit = data.kind == SampleKind::digit;
  const Augmentation usual = is_jpeg ? (is_digit ? Augmentation::resized_crop : Augmentation::resized_crop_and_flip)
                                     : (is_digit ? Augmentation::crop : Augmentation::crop_and_flip);
  rules.augmentation = options.augmentation.value_or(usual);
  rules.decoding = options.decoding.value_or(rules.decoding);
  rules.transforms = options.transforms;
  const bool is_of_images = rules.size == PictureSize{data.shape.height, data.shape.width};
  const std::int64_t side = shorter(rules.size);
  if (options.shorter_side) {
    const PictureSize tested = size_of(side_of_tests(options), data);
    require_resize_covers(*options.shorter_side, tested);
    rules.shorter_side = *options.shorter_side * side / shorter(tested);
  } else if (data.store == SampleStore::images) {
    if (!is_of_images) rules.shorter_side = side;  // these samples have no margin to crop
  } else if (is_jpeg || !is_of_images) {
    rules.shorter_side = side_with_margin(side);
  }
  return rules;
}

}  // namespace

void require_ramp_grows(const ImageOptions& options) {
  if (!options.ramp) return;
  const std::string ramp = size_ramp_text(*options.ramp);
  require(options.side.has_value(), Failure::usage,
          "--image-size-ramp {} does not state the final image size. Add --image-size.", ramp);
  require(options.ramp->from <= *options.side, Failure::usage,
          "--image-size-ramp {} starts with larger images than it ends with (--image-size {}). Start with smaller "
          "ones, or use no ramp: --image-size-ramp none.",
          ramp, *options.side);
}

void require_resize_covers(std::int64_t shorter_side, const PictureSize& image) {
  require(shorter_side >= shorter(image), Failure::usage,
          "--resize {} is smaller than the images of {} x {} pixels. Resized pictures would have black borders. Choose "
          "at least {}.",
          shorter_side, image.height, image.width, shorter(image));
}

ImageRules test_rules(const ImageOptions& options, const Manifest& data) {
  require_ramp_grows(options);
  return rules_of_size(options, data, size_of(side_of_tests(options), data));
}

ImageRules training_rules(const ImageOptions& options, const Manifest& data, std::int64_t epoch) {
  require_ramp_grows(options);
  const std::optional<std::int64_t> side =
      options.ramp ? std::optional(side_in_epoch(*options.ramp, *options.side, epoch)) : options.side;
  return rules_of_size(options, data, size_of(side, data));
}

std::vector<PictureSize> training_sizes(const ImageOptions& options, const Manifest& data, std::int64_t epochs) {
  std::vector<PictureSize> sizes;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    const PictureSize size = training_rules(options, data, epoch).size;
    if (sizes.empty() || sizes.back() != size) sizes.push_back(size);
    if (!options.ramp || epoch >= options.ramp->end) break;
  }
  return sizes;
}

}  // namespace lockstep
