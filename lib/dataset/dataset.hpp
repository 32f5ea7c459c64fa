// One split of a data set, open for reading: a directory with a manifest and shards.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "dataset/shards/manifest.hpp"
#include "picture/picture.hpp"

namespace lockstep {

// Samples are numbered through all shards, in the manifest's order. Thread-safe. Pixels are memory-mapped, not copied.
//
// If a shard is truncated while it is open, the first read of a missing page terminates the program with exit code 65
// and the shard's name.
class Dataset {
 public:
  // Throws Error(usage) if `directory` contains no data set, Error(bad_data) if a shard is missing, damaged, or differs
  // from the manifest.
  explicit Dataset(const std::filesystem::path& directory);
  ~Dataset();
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  const Manifest& manifest() const { return manifest_; }
  // Replaces the data set's own normalization by these values, one per channel. Call before loaders are created.
  void normalize_by(std::vector<float> mean, std::vector<float> deviation);
  std::int64_t samples() const { return first_sample_.back(); }

  Picture picture(std::int64_t sample) const;                  // for data sets that store pixels
  std::span<const std::byte> jpeg(std::int64_t sample) const;  // for data sets that store JPEG files
  PictureSize picture_size(std::int64_t sample) const;
  std::int32_t label(std::int64_t sample) const;
  // Call before picture(), jpeg() and label() if a sample is used in `epoch` (counted from 0). Records that this thread
  // is reading the sample's shard (see runtime/watch/rank_status). On the first access to a block in an epoch, compares
  // it with the manifest. Throws Error(bad_data) naming shard and block.
  void begin_reading(std::int64_t sample, std::int64_t epoch) const;
  // Asks the system to read samples [first, first + count), which are used in `epoch`, including all blocks that must
  // be compared first. Does not block. Small samples in blocks that are already checked are left to the system's own
  // read-ahead.
  void read_ahead(std::int64_t first, std::int64_t count, std::int64_t epoch) const;

 private:
  struct OpenShard;
  struct Place {
    OpenShard& shard;
    std::int64_t index;
  };
  Place find(std::int64_t sample) const;

  Manifest manifest_;
  std::vector<std::unique_ptr<OpenShard>> shards_;
  std::vector<std::int64_t> first_sample_;  // of each shard, followed by the total number of samples
};

}  // namespace lockstep
