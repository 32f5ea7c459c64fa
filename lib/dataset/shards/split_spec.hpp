// Assigns samples of a source to shards and splits: a pure function of the arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "dataset/shards/convert.hpp"
#include "dataset/split.hpp"

namespace lockstep {

// Consecutive samples [first, end) of a SplitSpec.
struct ShardRange {
  std::size_t first;
  std::size_t end;
};

struct SplitSpec {
  Split split;
  SourceSplit from;
  std::vector<std::int64_t> samples;  // indices in the source
  std::vector<ShardRange> shards;
};

// Splits in the order training, validation, test. The validation split is the source's own or, if the options ask for
// one, consists of the training samples with the smallest random numbers. `copies` (SampleSource::training_copies())
// have the number of their original, so all of them are in one split; the last copies may exceed the number asked for.
// Shards are limited by number of samples if all have one size, otherwise by bytes. Throws Error(usage) for options
// that do not fit the source.
std::vector<SplitSpec> plan_splits(const SampleSource& source, const ConvertOptions& options,
                                   const std::map<std::int64_t, std::int64_t>& copies);

}  // namespace lockstep
