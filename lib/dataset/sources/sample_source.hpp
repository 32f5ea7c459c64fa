// Interface of sample sources: samples before they are stored in shards.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/choice.hpp"
#include "dataset/shards/manifest.hpp"
#include "nn/sample_shape.hpp"
#include "picture/picture.hpp"

namespace lockstep {

class Communicator;

enum class SourceSplit { train, test, validation };  // validation only if SourceDescription::validation is set

struct SourceDescription {
  std::string name;    // "cifar10"
  std::string source;  // what it is and where it is, for people
  SampleShape shape;   // of the network's input
  SampleKind kind = SampleKind::picture;
  std::vector<std::string> classes;
  SampleStore store = SampleStore::images;  // what read() provides
  // Hash of names, sizes and labels of all files. Results of an earlier conversion are reused only if it is unchanged.
  // Empty if it is not known without reading the files.
  std::string fingerprint = {};
  std::string earlier_fingerprint = {};  // of the same files, by earlier versions
  std::string validation = {};           // origin of the source's own validation split, for people; empty: it has none
  std::string storage = {};              // the part of `source` that storage options decide; empty: there are none
  std::optional<std::int64_t> sample_bits = {};  // see Manifest::sample_bits
};

// One sample. Its memory is reused for the next one.
struct SourceSample {
  OwnedPicture picture;
  std::vector<std::uint8_t> jpeg;  // the JPEG file to store, if the source's store is JPEG
  std::string file;                // its source file, if it has a separate one
  std::string remark;              // what is unusual about that file: "is CMYK"; usually empty
};

// A file that was left out of the shards, or repaired for them.
struct OddFile {
  std::string file;
  bool is_skipped = false;
  std::string remark;  // completes the sentence "it ..."
  bool operator==(const OddFile&) const = default;
};

// Validates the whole source when it is opened, so that nothing is written from a damaged source.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  virtual const SourceDescription& description() const = 0;
  virtual std::int64_t samples(SourceSplit split) const = 0;
  // Approximate size of the sample in a shard; decides where one shard ends and the next begins.
  virtual std::int64_t expected_bytes(SourceSplit, std::int64_t) const {
    const SampleShape& shape = description().shape;
    return shape.height * shape.width * shape.channels;
  }
  // Writes the sample and returns its label; std::nullopt if its file is not a picture, with the reason in
  // `sample.remark`. Thread-safe.
  virtual std::optional<std::int32_t> read(SourceSplit split, std::int64_t index, SourceSample& sample) const = 0;
  // Hash of all samples and class names, if every rank holds them in memory; compared over ranks. Results of an earlier
  // conversion are reused only if it is unchanged. Otherwise empty.
  virtual std::string content_hash() const { return ""; }
  // Collective. Training samples that are copies of an earlier one, if that is known: the index of each, and that of
  // the first one. A split of the training samples keeps them together.
  virtual std::map<std::int64_t, std::int64_t> training_copies(const Communicator&) const { return {}; }
  // Files that were left out before reading began.
  virtual std::vector<OddFile> left_out() const { return {}; }
};

// The binary version of CIFAR, unpacked: the published files, or those that train.list and test.list name. Throw
// Error(usage) if a file cannot be read, Error(bad_data) if it is truncated or has a label out of range; also throw as
// read_file_lists().
std::unique_ptr<SampleSource> open_cifar10(const std::filesystem::path& directory);
// Which label of a CIFAR-100 sample to use: one of 100 classes, or one of 20 superclasses.
enum class Cifar100Labels : std::uint8_t { fine, coarse };
inline constexpr std::array<Choice<Cifar100Labels>, 2> cifar100_labels{
    {{"fine", Cifar100Labels::fine}, {"coarse", Cifar100Labels::coarse}}};
std::unique_ptr<SampleSource> open_cifar100(const std::filesystem::path& directory, Cifar100Labels labels);

// IDX files, plain or with .gz, with the names that MNIST and Fashion-MNIST share. Throw as above, and Error(bad_data)
// if the training labels do not have ten classes.
std::unique_ptr<SampleSource> open_mnist(const std::filesystem::path& directory);
std::unique_ptr<SampleSource> open_fashion_mnist(const std::filesystem::path& directory);

// Selects IDX files in a folder, and their number of classes.
struct IdxSet {
  std::optional<std::string> prefix = {};    // of the file names; unset: the folder contains one data set
  std::optional<std::int64_t> classes = {};  // 1 to max_idx_classes; unset: the largest training label plus one
};
inline constexpr std::int64_t max_idx_classes = 256;  // labels are bytes
// Any IDX data set, such as EMNIST. Files are found by the endings of their names: train-images-idx3-ubyte,
// train-labels-idx1-ubyte, and likewise with t10k- or test-. A dot may precede "idx". Throws as above, and Error(usage)
// if no data set exists, or if there are several and the prefix does not select one.
std::unique_ptr<SampleSource> open_idx_set(const std::filesystem::path& directory, const IdxSet& set);

// Synthetic pictures drawn from a formula, as a substitute for real data: `samples` for training, and a fifth of that
// for testing.
std::unique_ptr<SampleSource> make_synthetic_source(std::int64_t samples, std::uint64_t seed);

}  // namespace lockstep
