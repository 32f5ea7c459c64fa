// manifest.json: the list of a data set's shards, with everything needed to trust and to read them.
//
// Field by field in data/README.md. A data set is a directory that holds a manifest and its shards.
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
// What stands for the deviation of a channel that never changes, and so the least that a manifest may say.
inline constexpr float smallest_deviation = 1.0F / 255;

struct ShardEntry {
  std::string file;  // a plain name in the manifest's directory, never a path
  std::int64_t samples = 0;
  std::int64_t bytes = 0;                 // of the whole file
  std::string hash;                       // xxh3-128 of the whole file, 32 hex digits
  std::vector<std::string> block_hashes;  // xxh3-64 of each block_bytes of the file, the last one shorter
};

// What the samples are pictures of: decides whether a mirror image is still the same class.
enum class SampleKind { picture, digit };

// How shards hold samples.
enum class SampleStore : std::uint8_t {
  images,    // pixels, all of one size (format 1)
  pictures,  // pixels, of each picture's own size (format 2)
  jpeg,      // JPEG files, baseline and upright (format 2)
};
inline constexpr std::array<Choice<SampleStore>, 3> sample_stores{
    {{"images", SampleStore::images}, {"pictures", SampleStore::pictures}, {"jpeg", SampleStore::jpeg}}};

struct Manifest {
  std::string name;    // "cifar10"
  std::string source;  // what it was made from, for people; a stand-in says that it is one
  SampleStore store = SampleStore::images;
  SampleShape shape;  // of every sample; where they have sizes of their own, of what a network is given of them
  SampleKind kind = SampleKind::picture;
  std::vector<std::string> classes;
  std::vector<float> mean;  // per channel, of pixel / 255
  std::vector<float> deviation;
  std::int64_t block_bytes = 1 << 20;
  std::vector<ShardEntry> shards;
  std::string root_hash;  // xxh3-128 over everything above: identifies the data set

  // Significant bits, the lowest ones, of 16-bit PNG samples in the source; none: they are not noted.
  std::optional<std::int64_t> sample_bits = {};

  int format() const { return store == SampleStore::images ? 1 : 2; }
  std::int64_t samples() const;
};

// Throws Error(usage) if there is none, Error(bad_data) naming the field that is wrong. Every size and count is
// checked.
Manifest read_manifest(const std::filesystem::path& directory);
// Copies the manifest of `from`, byte for byte, to `to`, unless it is there already. Throws as read_manifest(), as
// write_file_atomically(), and Error(other) if it is not of `root_hash` any more.
void copy_manifest(const std::filesystem::path& from, const std::filesystem::path& to, const std::string& root_hash);
// The name, source, store, shape, kind, sample bits and classes of a manifest that is yet to be written, as reading
// will give them: bytes that are not UTF-8 are replaced. Throws Error(usage) if reading would refuse them, which is to
// be known before shards are made.
Manifest as_it_will_be_read(const std::filesystem::path& directory, const Manifest& draft);
// Writes to a temporary name, fsyncs and renames. Fills root_hash. Throws Error(usage) if reading would refuse it.
void write_manifest(const std::filesystem::path& directory, Manifest& manifest);

}  // namespace lockstep
