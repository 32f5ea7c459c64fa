// manifest.json: lists a data set's shards, with everything needed to verify and read them.
//
// data/README.md documents each field. A data set is a directory with a manifest and its shards.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/text/choice.hpp"
#include "nn/sample_shape.hpp"

namespace lockstep {

inline constexpr const char* manifest_file = "manifest.json";
// Minimum deviation in a manifest. It replaces the deviation of a constant channel.
inline constexpr float smallest_deviation = 1.0F / 255;

struct ShardEntry {
  std::string file;  // a plain name in the manifest's directory, not a path
  std::int64_t samples = 0;
  std::int64_t bytes = 0;                 // size of the whole file
  std::string hash;                       // xxh3-128 of the whole file, 32 hex digits
  std::vector<std::string> block_hashes;  // xxh3-64 of each block of block_bytes; the last block may be shorter
};

// Kind of the samples, which decides whether a mirror image has the same class.
enum class SampleKind { picture, digit };

// Storage format of samples in shards.
enum class SampleStore : std::uint8_t {
  images,    // pixels, all samples of one size (format 1)
  pictures,  // pixels, each picture of its own size (format 2)
  jpeg,      // baseline, upright JPEG files (format 2)
};
inline constexpr std::array<Choice<SampleStore>, 3> sample_stores{
    {{"images", SampleStore::images}, {"pictures", SampleStore::pictures}, {"jpeg", SampleStore::jpeg}}};

struct Manifest {
  std::string name;    // "cifar10"
  std::string source;  // origin of the data, for people; synthetic data are identified as such
  SampleStore store = SampleStore::images;
  SampleShape shape;  // of every sample; if sizes vary, of the network's input
  SampleKind kind = SampleKind::picture;
  std::vector<std::string> classes;
  std::vector<float> mean;  // per channel, in units of pixel / 255
  std::vector<float> deviation;
  std::int64_t block_bytes = 1 << 20;
  std::vector<ShardEntry> shards;
  std::string root_hash;  // xxh3-128 over all fields above: identifies the data set

  // Significant bits, in the lowest positions, of 16-bit PNG files in the source; unset: not recorded.
  std::optional<std::int64_t> sample_bits = {};

  int format() const { return store == SampleStore::images ? 1 : 2; }
  std::int64_t samples() const;
};

// Length of the hashed blocks of a data set of about `all_bytes`: the first block holds a shard's `structure_bytes`,
// and the manifest, which has a hash of every block, stays far below its largest size.
std::int64_t block_bytes_for(std::int64_t structure_bytes, std::int64_t all_bytes);

// Throws Error(usage) if there is no manifest, Error(bad_data) naming the faulty field. Checks every size and count.
Manifest read_manifest(const std::filesystem::path& directory);
// Copies the manifest of `from` byte for byte to `to`, unless it already exists there. Throws as read_manifest() and
// write_file_atomically(), and Error(other) if its root hash is no longer `root_hash`.
void copy_manifest(const std::filesystem::path& from, const std::filesystem::path& to, const std::string& root_hash);
// Name, source, store, shape, kind, sample bits and classes of a manifest that is not yet written, in the form that
// reading will return: bytes that are not UTF-8 are replaced. Throws Error(usage) if reading would refuse them, so that
// this is known before shards are written.
Manifest as_it_will_be_read(const std::filesystem::path& directory, const Manifest& draft);
// Writes atomically: to a temporary name, then fsync and rename. Fills root_hash. Throws Error(usage) if reading would
// refuse the manifest.
void write_manifest(const std::filesystem::path& directory, Manifest& manifest);

}  // namespace lockstep
