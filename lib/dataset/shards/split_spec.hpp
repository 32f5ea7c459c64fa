// Which of a source's samples go into which shard of which split: a pure function of the source and the options.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataset/shards/convert.hpp"
#include "dataset/split.hpp"

namespace lockstep {

// Consecutive samples: [first, end) of a SplitSpec's.
struct ShardRange {
  std::size_t first;
  std::size_t end;
};

struct SplitSpec {
  Split split;
  SourceSplit from;
  std::vector<std::int64_t> samples;  // positions in the source
  std::vector<ShardRange> shards;
};

// Training, validation (the source's own, or if asked for those training samples that draw the smallest numbers), test.
// A shard is full by the number of its samples where all are of one size, else by their bytes. Throws Error(usage) for
// options that do not fit the source.
std::vector<SplitSpec> plan_splits(const SampleSource& source, const ConvertOptions& options);

}  // namespace lockstep
