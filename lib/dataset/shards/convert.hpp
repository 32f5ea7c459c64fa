// Converts a source of samples to data sets on disk: OUT/train, OUT/test and, if the source has one or the user asks
// for it, OUT/validation.
#pragma once

#include <cstdint>
#include <filesystem>

#include "comm/communicator.hpp"
#include "dataset/sources/sample_source.hpp"

namespace lockstep {

struct ConvertOptions {
  std::filesystem::path output;
  std::int64_t samples_per_shard = 10'000;                 // if all samples have the same size
  std::int64_t bytes_per_shard = std::int64_t{256} << 20;  // otherwise
  std::int64_t validation = 0;                             // samples to split off the training set, chosen by `seed`
  std::uint64_t seed = 1;
};

// Collective. The ranks share the shards; the result does not depend on the number of ranks. Shards are written
// atomically, and a manifest after its last shard. A run resumes an interrupted one: valid shards are kept, others
// replaced. OUT/conversion.json records the options and the source, and a run with others is refused. OUT/odd_files.csv
// lists source files that were left out or repaired. Throws Error(usage) for invalid options and folders, Error(other)
// if the disk is full.
void convert(const Communicator& world, const SampleSource& source, const ConvertOptions& options);

}  // namespace lockstep
