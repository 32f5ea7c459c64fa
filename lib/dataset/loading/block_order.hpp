// The order of an epoch that reads shards from beginning to end, a piece after another: for data that memory does not
// hold. A pure function, as SampleOrder is.
//
// The split is cut into blocks of samples that lie one after another. Each epoch strings them together in an order of
// its own, closes it to a ring, and cuts that somewhere into lanes of equal length. Every batch takes as many samples
// from each lane, and each lane is shuffled window by window. So what a lane reads moves ahead along the string, block
// after block, and no lane reads what another does: with as many lanes as ranks, or a multiple, a rank reads its own
// blocks alone.
#pragma once

#include <cstdint>
#include <optional>

#include "dataset/loading/sampler.hpp"
#include "dataset/shards/manifest.hpp"

namespace lockstep {

struct BlockShuffle {
  std::int64_t block = 1;   // samples that lie one after another
  std::int64_t window = 1;  // samples of a lane that are shuffled among one another
  std::int64_t lanes = 1;   // divides the global batch
};

// Blocks of 4 MiB, windows of all lanes together of `window_bytes`, and at most 64 lanes.
BlockShuffle block_shuffle(const Manifest& data, std::int64_t global_batch, std::int64_t window_bytes);

// Samples [first, first + count) of a split.
struct SampleRange {
  std::int64_t first;
  std::int64_t count;
  bool operator==(const SampleRange&) const = default;
};

// A bijection of [0, samples), another one for each (seed, epoch).
class BlockOrder {
 public:
  BlockOrder(std::int64_t samples, std::int64_t global_batch, const BlockShuffle& shuffle, std::uint64_t seed,
             std::int64_t epoch);

  std::int64_t sample_at(std::int64_t position) const;  // 0 <= position < samples
  // The block that the lane of `position`, in a whole batch, comes to a window later, in this epoch or the next one;
  // none where it is in the middle of one. Of a block that two lanes share each has its own piece.
  std::optional<SampleRange> block_ahead(std::int64_t position) const;

 private:
  struct LanePlace {
    std::int64_t lane;
    std::int64_t place;
  };
  LanePlace lane_place(std::int64_t position) const;
  struct BlockPlace {
    SampleRange left;  // of the block from here on
    bool begins;
  };
  BlockPlace block_at(std::int64_t place) const;  // of the string
  std::optional<SampleRange> block_begun(std::int64_t lane, std::int64_t place) const;

  std::int64_t samples_;
  std::int64_t global_batch_;
  BlockShuffle shuffle_;
  std::uint64_t seed_;
  std::int64_t epoch_;
  std::int64_t lane_length_;
  Permutation blocks_;  // whole ones
  std::int64_t turn_;   // place of the string that the first lane begins at
};

}  // namespace lockstep
