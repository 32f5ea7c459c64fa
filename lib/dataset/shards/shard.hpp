// A shard: one HDF5 file of samples.
//
//   /images  uint8 [count, h, w, c]  contiguous
//   /labels  int32 [count]           contiguous, each below the number of classes
//
// Format 2, for samples of different sizes:
//
//   /labels   int32 [count]      as above
//   /offsets  int64 [count + 1]  contiguous: start of each sample, and end of the last one
//   /sizes    int32 [count, 2]   contiguous: height and width of each picture
//   /samples  uint8 [bytes]      contiguous: concatenated samples, pixels [height, width, channels] or JPEG files
//
// Root attributes: format (1 or 2), classes (their names), and those of ShardFacts. HDF5 only locates the datasets;
// samples are then read through a memory mapping. All HDF5 structures are in the first block of the file, before the
// samples. Labels, offsets and sizes of format 2 follow them, before the samples.
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

// Attributes of a shard for users who have only the shard. A reader with a manifest does not need them.
//
//   @name, @split, @kind, @store, @axes  text
//   @sample_shape                        int64 [3]: height, width, channels of the network's input
//   @shard_mean, @shard_deviation        fp32 [channels], of pixel / 255, over this shard only, because those of the
//                                        data set are known only after its last shard
//
// A hash line after HDF5's bytes (hash_line()) makes such a shard verifiable without a manifest.
struct ShardFacts {
  std::string name;  // of the data set
  std::string split;
  SampleKind kind = SampleKind::picture;
  SampleStore store = SampleStore::images;
  SampleShape shape;
  std::vector<float> mean;
  std::vector<float> deviation;
};

// The bytes of a shard: a pure function of its content, so equal samples give equal files. Without `facts` the result
// equals that of earlier versions.
//
//   images  [labels.size(), h, w, c]
std::vector<std::byte> shard_bytes(const SampleShape& shape, std::span<const std::string> classes,
                                   std::span<const std::uint8_t> images, std::span<const std::int32_t> labels,
                                   const std::optional<ShardFacts>& facts = {});

// Samples of a shard in format 2.
struct PictureSamples {
  std::vector<std::uint8_t> bytes;       // concatenated samples
  std::vector<std::int64_t> offsets{0};  // [samples + 1]
  std::vector<PictureSize> sizes;
  std::vector<std::int32_t> labels;

  void add(std::span<const std::uint8_t> sample, const PictureSize& size, std::int32_t label);
};
// The bytes of a shard in format 2; otherwise like shard_bytes().
std::vector<std::byte> picture_shard_bytes(std::span<const std::string> classes, const PictureSamples& samples,
                                           const std::optional<ShardFacts>& facts = {});

// The first bytes of a shard with these classes, which hold all HDF5 structures: at most this many.
std::int64_t shard_structure_bytes(std::span<const std::string> classes);

// Longest allowed side of a picture in a shard, in pixels.
inline constexpr std::int64_t max_picture_side = 1 << 16;

// Opens a shard that a manifest lists. Throws Error(bad_data) if it does not exist, Error(usage) if it is not a regular
// file, and as system_failure().
RegularFile open_shard(const std::filesystem::path& path);

// Thread-safe after construction. Only one thread at a time may construct one, because HDF5 is not thread-safe.
class ShardReader {
 public:
  // Opens shard `entry` of `manifest` in `directory`. All structure is checked against the manifest and the file size,
  // so no later access can leave the file. The hash of the first block is verified before HDF5 reads it, because HDF5
  // 1.10 reads beyond its buffers in damaged structures. Offsets and sizes are verified before they are used. Throws
  // Error(bad_data) naming the file and the defect; Error(usage) if it is not a regular file.
  ShardReader(const std::filesystem::path& directory, const Manifest& manifest, const ShardEntry& entry);

  const std::filesystem::path& path() const { return path_; }
  std::int64_t samples() const { return samples_; }
  std::span<const std::uint8_t> stored(std::int64_t sample) const;  // pixels [h, w, c], or a JPEG file
  PictureSize size(std::int64_t sample) const;
  std::int32_t label(std::int64_t sample) const;
  std::span<const std::byte> label_bytes(std::int64_t sample) const;

  // The whole file. If the file has been truncated, reading it terminates the program with a message.
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
  MappingGuard guard_;  // after file_: it must be destroyed first
  std::int64_t samples_;
  PictureSize image_size_;       // of all samples; format 1
  std::size_t image_bytes_ = 0;  // format 1
  const std::uint8_t* stored_ = nullptr;
  const std::byte* labels_ = nullptr;   // these pointers may be unaligned for their element type
  const std::byte* offsets_ = nullptr;  // format 2
  const std::byte* sizes_ = nullptr;    // format 2
};

}  // namespace lockstep
