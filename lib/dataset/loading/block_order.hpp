// Sample order of an epoch that reads shards sequentially, block by block, for data that do not fit into memory. A pure
// function, like SampleOrder.
//
// The split is divided into blocks of consecutive samples. In each epoch:
// - The blocks are concatenated in random order into a ring. From a random offset on, the ring is cut into lanes of
//   equal length.
// - Every batch takes the same number of samples from each lane.
// - Each lane is shuffled within windows.
//
// So a lane reads its blocks one after another, and lanes read disjoint samples. If the number of lanes is a multiple
// of the number of ranks, each rank reads only its own blocks.
#pragma once

#include <cstdint>
#include <optional>

#include "dataset/loading/sampler.hpp"
#include "dataset/shards/manifest.hpp"

namespace lockstep {

struct BlockShuffle {
  std::int64_t block = 1;   // number of consecutive samples
  std::int64_t window = 1;  // number of samples of a lane that are shuffled together
  std::int64_t lanes = 1;   // divides the global batch
};

// Blocks of 4 MiB, windows of `window_bytes` over all lanes, and at most 64 lanes.
BlockShuffle block_shuffle(const Manifest& data, std::int64_t global_batch, std::int64_t window_bytes);

// Samples [first, first + count) of a split.
struct SampleRange {
  std::int64_t first;
  std::int64_t count;
  bool operator==(const SampleRange&) const = default;
};

// A bijection of [0, samples), different for each (seed, epoch).
class BlockOrder {
 public:
  BlockOrder(std::int64_t samples, std::int64_t global_batch, const BlockShuffle& shuffle, std::uint64_t seed,
             std::int64_t epoch);

  std::int64_t sample_at(std::int64_t position) const;  // 0 <= position < samples
  // The block that the lane of `position` reaches one window later, in this epoch or the next one. std::nullopt if that
  // place is inside a block. If two lanes share a block, each gets only its own part. `position` must be in a whole
  // batch.
  std::optional<SampleRange> block_ahead(std::int64_t position) const;

 private:
  struct LanePlace {
    std::int64_t lane;
    std::int64_t place;
  };
  LanePlace lane_place(std::int64_t position) const;
  struct BlockPlace {
    SampleRange left;  // the rest of the block from this place on
    bool begins;
  };
  BlockPlace block_at(std::int64_t place) const;  // `place` counts along the ring
  std::optional<SampleRange> block_begun(std::int64_t lane, std::int64_t place) const;

  std::int64_t samples_;
  std::int64_t global_batch_;
  BlockShuffle shuffle_;
  std::uint64_t seed_;
  std::int64_t epoch_;
  std::int64_t lane_length_;
  Permutation blocks_;  // order of the whole blocks
  std::int64_t turn_;   // offset in the ring at which the first lane begins
};

}  // namespace lockstep
