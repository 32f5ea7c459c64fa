// One split of a data set, open for reading: a directory that holds a manifest and its shards.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "dataset/shards/manifest.hpp"
#include "picture/picture.hpp"

namespace lockstep {

// Samples are numbered through all shards, in the manifest's order. Thread-safe: the pixels are mapped, nothing is
// copied.
//
// A shard that shrinks while it is open cannot be told from memory that went away: the first read of a missing page
// ends the program with code 65 and the shard's name.
class Dataset {
 public:
  // Throws Error(usage) if `directory` holds no data set, Error(bad_data) if a shard is missing, damaged, or other than
  // the manifest says.
  explicit Dataset(const std::filesystem::path& directory);
  ~Dataset();
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  const Manifest& manifest() const { return manifest_; }
  // Images are normalised by these from now on, one value a channel, and not by the data's own. Before there is a
  // loader.
  void normalise_by(std::vector<float> mean, std::vector<float> deviation);
  std::int64_t samples() const { return first_sample_.back(); }

  Picture picture(std::int64_t sample) const;                  // of a data set that stores pixels
  std::span<const std::byte> jpeg(std::int64_t sample) const;  // of one that stores JPEG files
  PictureSize picture_size(std::int64_t sample) const;
  std::int32_t label(std::int64_t sample) const;
  // Call before picture(), jpeg() and label() where a sample is used in `epoch` (counted from 0). Puts down that this
  // thread reads the sample's shard from here on (see runtime/watch/rank_status), and at an epoch's first touch of a
  // block compares it with the manifest: throws Error(bad_data) naming shard and block.
  void begin_reading(std::int64_t sample, std::int64_t epoch) const;
  // Asks the system to read samples [first, first + count), which lie one after another and are used in `epoch`, with
  // all of the blocks that are to be compared first; waits for nothing. Small samples of blocks that are known to be
  // whole are left to the system, which reads as much around whatever is missing.
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
  std::vector<std::int64_t> first_sample_;  // of each shard, and after them the number of all samples
};

}  // namespace lockstep
