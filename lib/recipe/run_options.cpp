#include "recipe/run_options.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "device/precision.hpp"
#include "models/model_zoo.hpp"
#include "network/onnx/onnx_network.hpp"
#include "optim/optimizer.hpp"

namespace lockstep {

namespace {

// Checks virtual ranks only: other batches depend on the number of ranks.
void require_possible_batch(const BatchOptions& plan) {
  constexpr std::int64_t plenty = std::int64_t{1} << 31;
  if (plan.virtual_ranks) loader_share(fit_global_batch(plan, 1, plenty), 0, 1);
}

void require_possible_schedule(const Recipe& recipe) {
  const double warmup = recipe.learning_rate.warmup_epochs.value_or(0);
  const bool is_by_steps = recipe.max_steps && recipe.epochs.by == ChosenBy::program;
  require(is_by_steps || warmup < static_cast<double>(recipe.epochs.value), Failure::usage,
          "--warmup {:g} does not fit into a training of --epochs {}. Shorten the warm-up or train longer.", warmup,
          recipe.epochs.value);
  constexpr std::int64_t fine = 1000000;  // steps per epoch: enough that distinct milestones stay distinct
  LearningRate rate = recipe.learning_rate;
  rate.warmup_epochs = 0;
  LrSchedule(rate, 1, fine, fine);
}

void require_possible_servers(const Recipe& recipe, const RunOptions& run) {
  require(
      !run.sums.shard_optimizer, Failure::usage,
      "--shard-optimizer divides the optimizer state among all ranks, but with --sync ps and ps-async the servers have "
      "it. Leave out --shard-optimizer.");
  require(recipe.sync_batch_norm_ranks == 1, Failure::usage,
          "--sync-batch-norm needs samples on every rank, but with --sync ps and ps-async servers have none. Leave out "
          "one of the two.");
}

// Weights depend on which trainer is faster.
void require_possible_async_updates(const Recipe& recipe, const RunOptions& run) {
  require(!recipe.batch.virtual_ranks, Failure::usage,
          "--virtual-ranks gives the same weights on any number of ranks, but with --sync ps-async two runs have "
          "different weights. Use --sync ps, or leave out --virtual-ranks.");
  require(!run.device.deterministic, Failure::usage,
          "--deterministic gives the same weights in every run, but with --sync ps-async they depend on which trainer "
          "is faster. Use --sync ps, or leave out --deterministic.");
  require(recipe.batch.accumulate == 1, Failure::usage,
          "--sync ps-async makes an update of each micro-batch, but --accumulate {} adds up several. Leave out "
          "--accumulate.",
          recipe.batch.accumulate);
  require(run.sums.servers == 1 || !needs_norms(recipe.optimizer), Failure::usage,
          "--clip-norm and --optimizer lars need norms of whole gradients, which no server has with --sync ps-async "
          "--servers {}. Use one server.",
          run.sums.servers);
  require(recipe.arithmetic.precision != DType::f16, Failure::usage,
          "--precision fp16 skips an update on all ranks if one of them overflows, but with --sync ps-async they do "
          "not learn of it. Use --precision bf16.");
}

// Trainers come and go, so weights must not depend on how many there are.
Settings with_virtual_ranks(Settings settings) {
  std::optional<int>& virtual_ranks = settings.recipe.batch.virtual_ranks;
  const int trainers = settings.run.sums.trainers;
  if (settings.recipe.sync == Sync::servers && trainers > 0 && !virtual_ranks) virtual_ranks = trainers;
  return settings;
}

void require_possible_trainers(const Recipe& recipe, const RunOptions& run) {
  require(run.sums.servers == 1, Failure::usage,
          "--trainers {} needs one server, but --servers is {}. Leave out --servers, or start trainers and servers in "
          "one MPI world without --trainers.",
          run.sums.trainers, run.sums.servers);
  const int virtual_ranks = recipe.batch.virtual_ranks.value_or(run.sums.trainers);
  require(virtual_ranks >= run.sums.trainers, Failure::usage,
          "--trainers {} cannot share --virtual-ranks {}, because each virtual rank is computed by one trainer. Raise "
          "--virtual-ranks, or lower --trainers.",
          run.sums.trainers, virtual_ranks);
  require(!run.output.empty() || !run.trainer_of.empty(), Failure::usage,
          "--trainers {} needs --output, in which trainers find the address of the server.", run.sums.trainers);
}

// Each rank's weights depend on the number of ranks, and ranks exchange nothing within a step.
void require_possible_local_updates(const Recipe& recipe, const RunOptions& run) {
  require(!recipe.batch.virtual_ranks, Failure::usage,
          "--virtual-ranks gives the same weights on any number of ranks, but with --sync local each rank updates its "
          "own. Leave out one of the two.");
  require(recipe.batch.accumulate == 1, Failure::usage,
          "--sync local makes an update of each micro-batch, but --accumulate {} adds up several. Leave out "
          "--accumulate, or set --local-steps {} instead.",
          recipe.batch.accumulate, recipe.batch.accumulate);
  require(recipe.sync_batch_norm_ranks == 1, Failure::usage,
          "--sync-batch-norm exchanges statistics in each micro-batch, but with --sync local ranks exchange nothing "
          "within a step. Leave out one of the two.");
  require(
      !run.sums.shard_optimizer, Failure::usage,
      "--shard-optimizer divides one optimizer state, but with --sync local each rank has its own. Leave out one of "
      "the two.");
  require(recipe.arithmetic.precision != DType::f16, Failure::usage,
          "--precision fp16 skips an update on all ranks if one of them overflows, but with --sync local they do not "
          "learn of it. Use --precision bf16.");
}

// Weights depend on which rank is faster.
void require_possible_shares_by_speed(const Recipe& recipe, const RunOptions& run) {
  require(
      recipe.batch.local_steps > 1, Failure::usage,
      "--local-shares by-speed divides the micro-batches of a step, but with --local-steps 1 each rank has one. Set "
      "more --local-steps, such as 16.");
  require(!run.device.deterministic, Failure::usage,
          "--deterministic gives the same weights in every run, but with --local-shares by-speed they depend on which "
          "rank is faster. Leave out one of the two.");
}

// Each rank adds what its compressed gradients have lost to those of its next step.
void require_possible_compression(const Recipe& recipe, const RunOptions& run) {
  require(!recipe.batch.virtual_ranks, Failure::usage,
          "--virtual-ranks gives the same weights on any number of ranks, but --compress approximates sums over these "
          "ranks. Leave out one of the two.");
  require(recipe.sync != Sync::servers && recipe.sync != Sync::async_servers, Failure::usage,
          "--compress approximates sums that every rank gets, but with --sync ps and ps-async only servers get them. "
          "Use --sync all-reduce or local.");
  require(!run.sums.shard_optimizer, Failure::usage,
          "--compress approximates sums that every rank gets, but with --shard-optimizer each rank gets a part. Leave "
          "out one of the two.");
  require(recipe.arithmetic.precision != DType::f16, Failure::usage,
          "--precision fp16 skips steps and changes the scale of gradients, but --compress adds gradients of earlier "
          "steps. Use --precision bf16.");
}

// Each server has parts of the weights, as each rank has with --shard-optimizer.
void require_whole_matrices(const Recipe& recipe, const RunOptions& run) {
  require(
      !run.sums.shard_optimizer, Failure::usage,
      "--optimizer muon multiplies whole matrices, but with --shard-optimizer each rank has parts of them. Leave out "
      "one of the two.");
  require(servers_of({recipe, run}) <= 1, Failure::usage,
          "--optimizer muon multiplies whole matrices, but with --servers {} each server has parts of them. Use one "
          "server.",
          run.sums.servers);
}

std::string key_of(const std::string& tag) { return tag.substr(0, tag.find('=')); }

void require_possible_tags(const std::vector<std::string>& tags) {
  constexpr std::size_t max_tags = 64;  // limited by HDF5: 64 KiB of attributes in a checkpoint
  require(tags.size() <= max_tags, Failure::usage,
          "--tag is given {} times, but a training can have at most {} tags. Remove some.", tags.size(), max_tags);
  for (auto tag = tags.begin(); tag != tags.end(); ++tag) {
    const auto earlier = std::ranges::find(tags.begin(), tag, key_of(*tag), key_of);
    require(earlier == tag, Failure::usage, "--tag: '{}' and '{}' have the same key. Give each key once.", *earlier,
            *tag);
  }
}

}  // namespace

ValidSettings::ValidSettings(Settings settings) : settings_(with_virtual_ranks(std::move(settings))) {
  const auto& [recipe, run] = settings_;
  require_model(model_name(recipe), recipe.residual_init);
  require(recipe.init.head == Head::as_written || !recipe.init.file.empty() || is_onnx_path(recipe.model),
          Failure::usage, "--new-head needs --init-from, or a --model from an ONNX file.");
  require(recipe.init.of_network == WeightsOfNetwork::used || (recipe.init.file.empty() && is_onnx_path(recipe.model)),
          Failure::usage, "--fresh-weights needs a --model from an ONNX file, without --init-from.");
  const bool is_own = is_onnx_path(recipe.model);
  require(!is_own || recipe.filter_init == FilterInit::standard, Failure::usage,
          "--dirac-init is for models by name, not for the network in '{}'. Leave out --dirac-init.", recipe.model);
  require(!is_own || recipe.first_convolution == FirstConvolution::trained, Failure::usage,
          "--whiten is for models by name, not for the network in '{}'. Leave out --whiten.", recipe.model);
  require(
      recipe.first_convolution == FirstConvolution::trained || recipe.init.file.empty(), Failure::usage,
      "--whiten computes the first convolution from the training images, but --init-from gives its weights. Leave out "
      "one of the two.");
  require_ramp_grows(recipe.images);
  require_possible_batch(recipe.batch);
  require_possible_schedule(recipe);
  const bool is_async = recipe.sync == Sync::async_servers;
  require(recipe.sync == Sync::local || is_async || recipe.batch.local_steps == 1, Failure::usage,
          "--local-steps {} needs --sync local or ps-async.", recipe.batch.local_steps);
  if (recipe.sync == Sync::local) require_possible_local_updates(recipe, run);
  if (recipe.local_shares == LocalShares::by_speed) require_possible_shares_by_speed(recipe, run);
  if (recipe.sync == Sync::servers || is_async) require_possible_servers(recipe, run);
  if (is_async) require_possible_async_updates(recipe, run);
  if (run.sums.trainers > 0) require_possible_trainers(recipe, run);
  if (needs_whole_matrices(recipe.optimizer)) require_whole_matrices(recipe, run);
  if (recipe.powersgd_rank > 0) require_possible_compression(recipe, run);
  require_possible_tags(run.tags);
  require(
      run.checkpoints.folder != "none", Failure::usage,
      "--checkpoints none would be a folder of this name. A training with --output always keeps checkpoints. To keep "
      "few, set --keep-latest 1 --keep-best 0. For a folder of this name, use ./none.");
  all_reduce_options(recipe, run);
}

Arithmetic arithmetic_of(const Device& device) {
  return {device.precision(), device.uses_tf32(), device.has_direct_convolutions()};
}

DeviceOptions device_options(const Recipe& recipe, const RunOptions& run) {
  DeviceOptions options;
  options.name = run.device.name;
  options.threads = run.device.threads;
  options.instruction_set = run.device.instruction_set;
  options.direct_convolutions = recipe.arithmetic.direct_convolutions;
  options.precision = recipe.arithmetic.precision;
  options.verbose = run.device.verbose;
  options.tf32 = recipe.arithmetic.tf32;
  options.deterministic = run.device.deterministic || recipe.batch.virtual_ranks;
  options.fixed_order = run.device.deterministic && !recipe.batch.virtual_ranks;
  options.graphs = run.device.graphs;
  options.gpu_memory_mib = run.device.gpu_memory_mib;
  options.plan_folder = run.device.plan_folder;
  return options;
}

void require_follows(const Device& device, const Recipe& recipe) {
  const Arithmetic computes = arithmetic_of(device);
  const Arithmetic& asked = recipe.arithmetic;
  const bool follows = computes.precision == asked.precision && (asked.tf32 || !computes.tf32) &&
                       (asked.direct_convolutions || !computes.direct_convolutions) &&
                       (device.is_deterministic() || !recipe.batch.virtual_ranks);
  require(follows, Failure::usage,
          "{} was opened for another recipe. Its results would be rounded differently. Open it with "
          "device_options(recipe, run).",
          device.description());
}

int servers_of(const Settings& settings) {
  const Sync sync = settings.recipe.sync;
  if (settings.run.sums.trainers > 0) return 0;
  return sync == Sync::servers || sync == Sync::async_servers ? settings.run.sums.servers : 0;
}

AllReduceOptions all_reduce_options(const Recipe& recipe, const RunOptions& run) {
  constexpr std::int64_t mebibyte = 1 << 20;
  require(!recipe.batch.virtual_ranks || recipe.wire == DType::f32, Failure::usage,
          "--virtual-ranks sums gradients reproducibly, but --wire {} rounds them. Leave out one of the two.",
          precision_name(recipe.wire));
  return {run.sums.reducer, run.sums.bucket_mib * mebibyte, sums_of(recipe),
          recipe.wire,      servers_of({recipe, run}),      recipe.powersgd_rank};
}

}  // namespace lockstep
