// A shard: one HDF5 file of samples.
//
//   /images  uint8 [count, h, w, c]  contiguous
//   /labels  int32 [count]           contiguous, each below the number of classes
//
// Root attributes: format (1), classes (their names). HDF5 is the container, not the reader: it is asked once where the
// bytes lie, and they are mapped. Its own structures all lie in the first block of the file, before the samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/io/mapped_file.hpp"
#include "dataset/shards/manifest.hpp"
#include "dataset/shards/mapping_guard.hpp"

namespace lockstep {

// The bytes of a shard: a pure function of its content, so equal samples give equal files.
//
//   images  [labels.size(), h, w, c]
std::vector<std::byte> shard_bytes(const SampleShape& shape, std::span<const std::string> classes,
                                   std::span<const std::uint8_t> images, std::span<const std::int32_t> labels);

// Thread-safe once it stands. Construct in one thread at a time: HDF5 is not thread-safe.
class ShardReader {
 public:
  // Shard `entry` of `manifest`, in `directory`. Everything is checked against what the manifest says and against the
  // file's size: no later access can leave the file. HDF5 sees nothing of it before the hash of the first block is
  // found right, because HDF5 1.10 reads beyond its buffers in damaged structures. Throws Error(bad_data), naming the
  // file and what is wrong with it; Error(usage) where it is a pipe or the like.
  ShardReader(const std::filesystem::path& directory, const Manifest& manifest, const ShardEntry& entry);

  const std::filesystem::path& path() const { return path_; }
  std::int64_t samples() const { return samples_; }
  std::span<const std::uint8_t> image(std::int64_t sample) const;  // [h, w, c]
  std::int32_t label(std::int64_t sample) const;
  std::span<const std::byte> label_bytes(std::int64_t sample) const;

  // The whole file. Reading it ends the program with a sentence where the file was cut in between.
  std::span<const std::byte> mapped() const { return file_.bytes(); }

 private:
  ShardReader(std::filesystem::path path, const RegularFile& file, const Manifest& manifest, const ShardEntry& entry);

  std::filesystem::path path_;
  MappedFile file_;
  MappingGuard guard_;  // after the mapping: it must go first
  std::int64_t samples_;
  std::size_t image_bytes_;
  const std::uint8_t* images_ = nullptr;
  const std::byte* labels_ = nullptr;  // not always a multiple of four
};

}  // namespace lockstep
