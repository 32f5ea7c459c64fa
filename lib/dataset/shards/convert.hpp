// Turns a source of samples into data sets on disk: OUT/train, OUT/test and OUT/validation where the source has one or
// it is asked for.
#pragma once

#include <cstdint>
#include <filesystem>

#include "comm/communicator.hpp"
#include "dataset/sources/sample_source.hpp"

namespace lockstep {

struct ConvertOptions {
  std::filesystem::path output;
  std::int64_t samples_per_shard = 10'000;                 // of a source whose samples are of one size
  std::int64_t bytes_per_shard = std::int64_t{256} << 20;  // of another
  std::int64_t validation = 0;                             // samples split off the training set, chosen by `seed`
  std::uint64_t seed = 1;
};

// Collective; the shards are shared out among the ranks and do not depend on how many there are. Each is whole or
// absent, and a manifest comes after the last of its shards. Where a run was interrupted the next one goes on: shards
// that are right are kept, others replaced. OUT/conversion.json says what the folder is made from: a run with other
// options is refused. OUT/odd_files.csv names the source's files that were left out or set right. Throws Error(usage)
// for options and folders that do not fit, Error(other) where the disk is full.
void convert(const Communicator& world, const SampleSource& source, const ConvertOptions& options);

}  // namespace lockstep
