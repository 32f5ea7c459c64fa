// What a conversion knows of a shard that it has made: for the manifest, for statistics, and for the run that goes on
// where this one was interrupted.
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

// Sums over pixels, for mean and deviation. Whole numbers, so that no order of adding them changes the result.
struct PixelSums {
  std::vector<std::uint64_t> values;   // [channels]
  std::vector<std::uint64_t> squares;  // [channels]
  std::uint64_t pixels = 0;

  explicit PixelSums(std::int64_t channels)
      : values(static_cast<std::size_t>(channels)), squares(static_cast<std::size_t>(channels)) {}
  // pixels [..., channels]
  void add(std::span<const std::uint8_t> pixels_of_picture);
  void add(const PixelSums& others);
  // Into the manifest's mean and deviation.
  void set_statistics(Manifest& manifest) const;
};

struct ShardRecord {
  ShardEntry entry;  // with 0 samples where none of its files was a picture: then there is no such file
  PixelSums sums;
  std::vector<OddFile> odd_files;
};

// One line of JSON.
std::string to_text(const ShardRecord& record);
// Nothing where the text is no such record, of a data set with so many channels.
std::optional<ShardRecord> shard_record_from(const std::string& text, std::int64_t channels);

}  // namespace lockstep
