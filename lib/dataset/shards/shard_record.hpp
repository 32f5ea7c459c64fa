// What a conversion records about a finished shard: for the manifest, for statistics, and to resume an interrupted run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataset/shards/manifest.hpp"
#include "dataset/sources/sample_source.hpp"

namespace lockstep {

// Sums over pixels for mean and deviation. They are integers, so the order of summation does not affect the result.
struct PixelSums {
  std::vector<std::uint64_t> values;   // [channels]
  std::vector<std::uint64_t> squares;  // [channels]
  std::uint64_t pixels = 0;

  explicit PixelSums(std::int64_t channels)
      : values(static_cast<std::size_t>(channels)), squares(static_cast<std::size_t>(channels)) {}
  // pixels [..., channels]
  void add(std::span<const std::uint8_t> pixels_of_picture);
  void add(const PixelSums& others);
  // Sets the manifest's mean and deviation.
  void set_statistics(Manifest& manifest) const;
};

struct ShardRecord {
  ShardEntry entry;  // has 0 samples if none of the files was a picture; then the shard file does not exist
  PixelSums sums;
  std::vector<OddFile> odd_files;
};

// One line of JSON.
std::string to_text(const ShardRecord& record);
// std::nullopt if the text is not a record of a data set with that many channels.
std::optional<ShardRecord> shard_record_from(const std::string& text, std::int64_t channels);

}  // namespace lockstep
