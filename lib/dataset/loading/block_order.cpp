#include "dataset/loading/block_order.hpp"

#include <algorithm>
#include <cassert>

#include "base/random.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t block_bytes = 4 << 20;
constexpr std::int64_t max_lanes = 64;

// Key of the permutation of one window.
std::uint64_t window_key(std::uint64_t seed, std::int64_t epoch, std::int64_t first) {
  const auto bits = philox(seed, stream_counter(Stream::windows, epoch), static_cast<std::uint64_t>(first));
  return std::uint64_t{bits[0]} << 32 | bits[1];
}

// Offset in the ring at which an epoch begins. It is random, so the incomplete last batch, which is dropped, leaves out
// different samples each epoch.
std::int64_t draw_turn(std::int64_t samples, std::uint64_t seed, std::int64_t epoch) {
  constexpr std::uint64_t beyond_rounds = std::uint64_t{1} << 63;  // not used by the permutation of blocks
  const auto bits = philox(seed, stream_counter(Stream::blocks, epoch), beyond_rounds);
  const std::uint64_t drawn = std::uint64_t{bits[0]} << 32 | bits[1];
  return static_cast<std::int64_t>(drawn % static_cast<std::uint64_t>(samples));
}

}  // namespace

BlockShuffle block_shuffle(const Manifest& data, std::int64_t global_batch, std::int64_t window_bytes) {
  std::int64_t bytes = 0;
  for (const ShardEntry& entry : data.shards) bytes += entry.bytes;
  const std::int64_t samples = data.samples();
  const std::int64_t bytes_each = std::max<std::int64_t>(bytes / samples, 1);
  BlockShuffle shuffle;
  shuffle.block = std::clamp<std::int64_t>(block_bytes / bytes_each, 1, samples);
  shuffle.lanes = std::min(max_lanes, global_batch);
  while (global_batch % shuffle.lanes != 0) --shuffle.lanes;
  shuffle.window = std::max<std::int64_t>(window_bytes / bytes_each / shuffle.lanes, 1);
  return shuffle;
}

BlockOrder::BlockOrder(std::int64_t samples, std::int64_t global_batch, const BlockShuffle& shuffle, std::uint64_t seed,
                       std::int64_t epoch)
    : samples_(samples),
      global_batch_(global_batch),
      shuffle_(shuffle),
      seed_(seed),
      epoch_(epoch),
      lane_length_(samples / global_batch * (global_batch / shuffle.lanes)),
      blocks_(samples / shuffle.block, seed, stream_counter(Stream::blocks, epoch)),
      turn_(draw_turn(samples, seed, epoch)) {
  assert(samples >= global_batch && global_batch % shuffle.lanes == 0);
  assert(shuffle.block >= 1 && shuffle.block <= samples && shuffle.window >= 1);
}

BlockOrder::LanePlace BlockOrder::lane_place(std::int64_t position) const {
  const std::int64_t each = global_batch_ / shuffle_.lanes;
  const std::int64_t in_batch = position % global_batch_;
  return {in_batch / each, position / global_batch_ * each + in_batch % each};
}

// The incomplete last block stays last: in the file, and in the ring before it is rotated.
BlockOrder::BlockPlace BlockOrder::block_at(std::int64_t place) const {
  const std::int64_t turned = (place + turn_) % samples_;
  const std::int64_t whole = samples_ / shuffle_.block * shuffle_.block;
  if (turned >= whole) return {{turned, samples_ - turned}, turned == whole};
  const std::int64_t within = turned % shuffle_.block;
  return {{blocks_.at(turned / shuffle_.block) * shuffle_.block + within, shuffle_.block - within}, within == 0};
}

std::int64_t BlockOrder::sample_at(std::int64_t position) const {
  assert(position >= 0 && position < samples_);
  if (position >= lane_length_ * shuffle_.lanes) return block_at(position).left.first;  // not in a whole batch
  const auto [lane, place] = lane_place(position);
  const std::int64_t first = place - place % shuffle_.window;
  const std::int64_t length = std::min(shuffle_.window, lane_length_ - first);
  const std::int64_t window_begins = lane * lane_length_ + first;
  const Permutation window(length, window_key(seed_, epoch_, window_begins), stream_counter(Stream::windows, epoch_));
  return block_at(window_begins + window.at(place - first)).left.first;
}

std::optional<SampleRange> BlockOrder::block_ahead(std::int64_t position) const {
  assert(position >= 0 && position < lane_length_ * shuffle_.lanes);
  const auto [lane, place] = lane_place(position);
  const std::int64_t ahead = place + std::min(shuffle_.window, lane_length_);
  if (ahead < lane_length_) return block_begun(lane, ahead);
  const BlockOrder next(samples_, global_batch_, shuffle_, seed_, epoch_ + 1);
  return next.block_begun(lane, ahead - lane_length_);
}

// A lane may begin and end inside a block.
std::optional<SampleRange> BlockOrder::block_begun(std::int64_t lane, std::int64_t place) const {
  const auto [left, begins] = block_at(lane * lane_length_ + place);
  if (!begins && place != 0) return std::nullopt;
  return SampleRange{left.first, std::min(left.count, lane_length_ - place)};
}

}  // namespace lockstep
