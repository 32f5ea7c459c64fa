// A shard: one HDF5 file of samples.
//
//   /images  uint8 [count, h, w, c]  contiguous
//   /labels  int32 [count]           contiguous, each below the number of classes
//
// Format 2, whose samples have sizes of their own:
//
//   /labels   int32 [count]      as above
//   /offsets  int64 [count + 1]  contiguous: where each sample begins, and where the last one ends
//   /sizes    int32 [count, 2]   contiguous: height and width of each picture
//   /samples  uint8 [bytes]      contiguous: pixels [height, width, channels], or JPEG files, one after another
//
// Root attributes: format (1 or 2), classes (their names), and what ShardFacts says. HDF5 is the container, not the
// reader: it is asked once where the bytes lie, and they are mapped. Its own structures all lie in the first block of
// the file, before the samples; labels, offsets and sizes of format 2 lie between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/io/mapped_file.hpp"
#include "dataset/shards/manifest.hpp"
#include "dataset/shards/mapping_guard.hpp"
#include "picture/picture.hpp"

namespace lockstep {

// What a shard says of itself, for those who have it alone; a reader with a manifest needs none of it.
//
//   @name, @split, @kind, @store, @axes  text
//   @sample_shape                        int64 [3], height, width, channels of what a network is given
//   @shard_mean, @shard_deviation        fp32 [channels], of pixel / 255, over this shard alone: those of the set are
//                                        known when its last shard is made
//
// A line behind HDF5's bytes then has their hash (hash_line()), as no manifest may be there to tell it.
struct ShardFacts {
  std::string name;  // of the data set
  std::string split;
  SampleKind kind = SampleKind::picture;
  SampleStore store = SampleStore::images;
  SampleShape shape;
  std::vector<float> mean;
  std::vector<float> deviation;
};

// The bytes of a shard: a pure function of its content, so equal samples give equal files. Without facts it is what
// earlier versions wrote.
//
//   images  [labels.size(), h, w, c]
std::vector<std::byte> shard_bytes(const SampleShape& shape, std::span<const std::string> classes,
                                   std::span<const std::uint8_t> images, std::span<const std::int32_t> labels,
                                   const std::optional<ShardFacts>& facts = {});

// Of format 2.
struct PictureSamples {
  std::vector<std::uint8_t> bytes;       // of all, one after another
  std::vector<std::int64_t> offsets{0};  // [samples + 1]
  std::vector<PictureSize> sizes;
  std::vector<std::int32_t> labels;

  void add(std::span<const std::uint8_t> sample, const PictureSize& size, std::int32_t label);
};
// Likewise.
std::vector<std::byte> picture_shard_bytes(std::span<const std::string> classes, const PictureSamples& samples,
                                           const std::optional<ShardFacts>& facts = {});

// The longest side of a picture in a shard.
inline constexpr std::int64_t most_picture_side = 1 << 16;

// The file of a shard that a manifest lists. Throws Error(bad_data) if it is not there, Error(usage) where there is a
// pipe or the like, and as system_failure().
RegularFile open_shard(const std::filesystem::path& path);

// Thread-safe once it stands. Construct in one thread at a time: HDF5 is not thread-safe.
class ShardReader {
 public:
  // Shard `entry` of `manifest`, in `directory`. Everything is checked against what the manifest says and against the
  // file's size: no later access can leave the file. HDF5 sees nothing of it before the hash of the first block is
  // found right, because HDF5 1.10 reads beyond its buffers in damaged structures; nor are offsets and sizes believed
  // before theirs are. Throws Error(bad_data), naming the file and what is wrong with it; Error(usage) where it is a
  // pipe or the like.
  ShardReader(const std::filesystem::path& directory, const Manifest& manifest, const ShardEntry& entry);

  const std::filesystem::path& path() const { return path_; }
  std::int64_t samples() const { return samples_; }
  std::span<const std::uint8_t> stored(std::int64_t sample) const;  // pixels [h, w, c], or a JPEG file
  PictureSize size(std::int64_t sample) const;
  std::int32_t label(std::int64_t sample) const;
  std::span<const std::byte> label_bytes(std::int64_t sample) const;

  // The whole file. Reading it ends the program with a sentence where the file was cut in between.
  std::span<const std::byte> mapped() const { return file_.bytes(); }

 private:
  ShardReader(std::filesystem::path path, const RegularFile& file, const Manifest& manifest, const ShardEntry& entry);

  class File;
  void find_images(const File& shard, const Manifest& manifest);
  void find_pictures(const File& shard, const Manifest& manifest, const ShardEntry& entry);
  void require_listed_block_hashes(const std::byte* from, std::size_t bytes, const ShardEntry& entry,
                                   std::int64_t block_bytes) const;
  std::int64_t offset(std::int64_t sample) const;

  std::filesystem::path path_;
  MappedFile file_;
  MappingGuard guard_;  // after the mapping: it must go first
  std::int64_t samples_;
  PictureSize image_size_;       // of all samples, in format 1
  std::size_t image_bytes_ = 0;  // likewise
  const std::uint8_t* stored_ = nullptr;
  const std::byte* labels_ = nullptr;   // what follows is not always a multiple of its elements' size
  const std::byte* offsets_ = nullptr;  // format 2
  const std::byte* sizes_ = nullptr;    // likewise
};

}  // namespace lockstep
