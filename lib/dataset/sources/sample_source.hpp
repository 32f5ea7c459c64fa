// Where samples come from before they are in shards.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
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

enum class SourceSplit { train, test, validation };  // the last one only where the description says so

struct SourceDescription {
  std::string name;    // "cifar10"
  std::string source;  // what and where, for people
  SampleShape shape;   // of the images that a network is given
  SampleKind kind = SampleKind::picture;
  std::vector<std::string> classes;
  SampleStore store = SampleStore::images;  // what read() gives
  // Of names, sizes and labels of all its files: what is made of them may be kept as long as it is the same. Empty
  // where that is not known without reading them.
  std::string fingerprint = {};
  std::string validation = {};  // where the source's own validation split comes from, for people; empty: it has none
  std::optional<std::int64_t> sample_bits = {};  // as in a manifest
};

// One sample, with memory that is used again for the next one.
struct SourceSample {
  OwnedPicture picture;
  std::vector<std::uint8_t> jpeg;  // the picture as it is to be stored, of a source whose store is JPEG
  std::string file;                // where it comes from, if that is a file of its own
  std::string remark;              // what is odd about that file: "is CMYK"; empty for most
};

// A file that is not in the shards, or was set right for them.
struct OddFile {
  std::string file;
  bool is_skipped = false;
  std::string remark;  // completes "it ..."
  bool operator==(const OddFile&) const = default;
};

// Checked as a whole when it is opened, so that nothing is written from a source that is damaged further on.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  virtual const SourceDescription& description() const = 0;
  virtual std::int64_t samples(SourceSplit split) const = 0;
  // About as many bytes as the sample takes in a shard: decides where one shard ends and the next begins.
  virtual std::int64_t expected_bytes(SourceSplit, std::int64_t) const {
    const SampleShape& shape = description().shape;
    return shape.height * shape.width * shape.channels;
  }
  // Writes the sample and returns its label; nothing where its file is no picture, which `sample.remark` then says.
  // Thread-safe.
  virtual std::optional<std::int32_t> read(SourceSplit split, std::int64_t index, SourceSample& sample) const = 0;
  // Of all samples, where every rank holds them in memory: compared over ranks. Else empty.
  virtual std::string content_hash() const { return ""; }
  // What was left out before reading began.
  virtual std::vector<OddFile> left_out() const { return {}; }
};

// The binary version of CIFAR, unpacked. They throw Error(usage) where a file cannot be read, Error(bad_data) where it
// is cut short or has a label out of range.
std::unique_ptr<SampleSource> open_cifar10(const std::filesystem::path& directory);
// Of the two labels that each sample of CIFAR-100 has: of 100 classes, or of the 20 that those are grouped into.
enum class Cifar100Labels : std::uint8_t { fine, coarse };
inline constexpr std::array<Choice<Cifar100Labels>, 2> cifar100_labels{
    {{"fine", Cifar100Labels::fine}, {"coarse", Cifar100Labels::coarse}}};
std::unique_ptr<SampleSource> open_cifar100(const std::filesystem::path& directory, Cifar100Labels labels);

// IDX files, plain or with .gz, under the names that MNIST and Fashion-MNIST use alike. Fail as above, and with
// Error(bad_data) where the training labels are not of ten classes.
std::unique_ptr<SampleSource> open_mnist(const std::filesystem::path& directory);
std::unique_ptr<SampleSource> open_fashion_mnist(const std::filesystem::path& directory);

// Which of the IDX files in a folder, and of how many classes they are.
struct IdxSet {
  std::optional<std::string> prefix = {};    // of the files' names; none: the folder holds one set
  std::optional<std::int64_t> classes = {};  // 1 to most_idx_classes; none: the largest training label and one more
};
inline constexpr std::int64_t most_idx_classes = 256;  // a label is a byte
// Any such set, like EMNIST's. Its files are found by their names' ends, whatever comes before:
// train-images-idx3-ubyte, train-labels-idx1-ubyte, and likewise with t10k- or test-; a dot may stand before "idx".
// Fails as above, and with Error(usage) where none or several sets are there and the prefix does not choose one.
std::unique_ptr<SampleSource> open_idx_set(const std::filesystem::path& directory, const IdxSet& set);

// A stand-in for real pictures, drawn from a formula: `samples` for training and a fifth of that for the test.
std::unique_ptr<SampleSource> make_synthetic_source(std::int64_t samples, std::uint64_t seed);

}  // namespace lockstep
