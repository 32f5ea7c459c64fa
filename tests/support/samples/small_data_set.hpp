// A small data set on disk for tests, made of shards as make_shards writes them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/io/file.hpp"
#include "base/random.hpp"
#include "dataset/shards/hash.hpp"
#include "dataset/shards/manifest.hpp"
#include "dataset/shards/shard.hpp"
#include "picture/jpeg.hpp"
#include "support/samples/smooth_picture.hpp"

namespace lockstep {

// Pixel `i` of sample `sample`, noise that depends on both; the label is sample % 10.
inline std::uint8_t small_pixel(std::int64_t sample, std::int64_t i) {
  return static_cast<std::uint8_t>(philox(9, static_cast<std::uint64_t>(sample), static_cast<std::uint64_t>(i))[0]);
}
inline std::int32_t small_label(std::int64_t sample) { return static_cast<std::int32_t>(sample % 10); }

// Of a picture whose size is its own, where `shape` is that of the images.
inline PictureSize small_picture_size(const SampleShape& shape, std::int64_t sample) {
  return {shape.height + sample % 3, shape.width + sample % 5};
}

inline std::vector<std::uint8_t> small_pixels(std::int64_t sample, std::int64_t count) {
  std::vector<std::uint8_t> pixels;
  for (std::int64_t i = 0; i < count; ++i) pixels.push_back(small_pixel(sample, i));
  return pixels;
}

// Writes one split into `directory`, which is created. Each block of `block_bytes` has a hash; the first one is read at
// the start.
inline void write_small_data_set(const std::filesystem::path& directory, const SampleShape& shape, std::int64_t samples,
                                 std::int64_t samples_per_shard, SampleStore store = SampleStore::images,
                                 std::int64_t block_bytes = Manifest().block_bytes) {
  std::filesystem::create_directories(directory);
  Manifest manifest;
  manifest.name = "small";
  manifest.source = "noise for tests";
  manifest.store = store;
  manifest.block_bytes = block_bytes;
  manifest.shape = shape;
  for (int c = 0; c < 10; ++c) manifest.classes.push_back("class " + std::to_string(c));
  manifest.mean.assign(static_cast<std::size_t>(shape.channels), 0.5F);
  manifest.deviation.assign(static_cast<std::size_t>(shape.channels), 0.25F);
  for (std::int64_t first = 0; first < samples; first += samples_per_shard) {
    PictureSamples made;
    for (std::int64_t sample = first; sample < std::min(first + samples_per_shard, samples); ++sample) {
      const PictureSize size =
          store == SampleStore::images ? PictureSize{shape.height, shape.width} : small_picture_size(shape, sample);
      made.add(store == SampleStore::jpeg ? encode_jpeg(smooth_picture(size, sample), 90)
                                          : small_pixels(sample, size.height * size.width * shape.channels),
               size, small_label(sample));
    }
    const std::vector<std::byte> bytes = store == SampleStore::images
                                             ? shard_bytes(shape, manifest.classes, made.bytes, made.labels)
                                             : picture_shard_bytes(manifest.classes, made);
    ShardEntry entry;
    entry.file = "shard-" + std::to_string(manifest.shards.size()) + ".h5";
    entry.samples = static_cast<std::int64_t>(made.labels.size());
    entry.bytes = static_cast<std::int64_t>(bytes.size());
    entry.hash = xxh3_128_hex(bytes);
    entry.block_hashes = block_hashes(bytes, manifest.block_bytes);
    write_file_atomically(directory / entry.file, std::span<const std::byte>(bytes));
    manifest.shards.push_back(std::move(entry));
  }
  write_manifest(directory, manifest);
}

}  // namespace lockstep
