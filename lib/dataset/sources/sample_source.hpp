// Where samples come from before they are in shards.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/picture.hpp"
#include "dataset/shards/manifest.hpp"
#include "nn/sample_shape.hpp"

namespace lockstep {

enum class SourceSplit { train, test };

struct SourceDescription {
  std::string name;    // "cifar10"
  std::string source;  // what and where, for people
  SampleShape shape;   // of the images that a network is given
  SampleKind kind = SampleKind::picture;
  std::vector<std::string> classes;
};

// Checked as a whole when it is opened, so that nothing is written from a source that is damaged further on.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  virtual const SourceDescription& description() const = 0;
  virtual std::int64_t samples(SourceSplit split) const = 0;
  // Writes the picture, which may have a size of its own, and returns the label.
  virtual std::int32_t read(SourceSplit split, std::int64_t index, OwnedPicture& picture) const = 0;
};

// The binary version of CIFAR, unpacked. They throw Error(usage) where a file cannot be read, Error(bad_data) where it
// is cut short or has a label out of range.
std::unique_ptr<SampleSource> open_cifar10(const std::filesystem::path& directory);
std::unique_ptr<SampleSource> open_cifar100(const std::filesystem::path& directory);  // the 100 fine labels

// IDX files, plain or with .gz, under the names that MNIST and Fashion-MNIST use alike. Fails as above.
std::unique_ptr<SampleSource> open_mnist(const std::filesystem::path& directory);
std::unique_ptr<SampleSource> open_fashion_mnist(const std::filesystem::path& directory);

// A stand-in for real pictures, drawn from a formula: `samples` for training and a fifth of that for the test.
std::unique_ptr<SampleSource> make_synthetic_source(std::int64_t samples, std::uint64_t seed);

// The sources by name: what make_shards offers. A new one is an entry in the table of source_table.cpp.
struct SourceRequest {
  std::filesystem::path folder;  // with the published files
  std::int64_t samples = 0;      // for training
  std::uint64_t seed = 0;
};
enum class SourceNeeds : std::uint8_t { folder, sample_count };  // which of these it cannot do without
struct SourceEntry {
  std::string_view name;
  std::string_view help;  // what it is and reads, for people
  SourceNeeds needs;
  std::unique_ptr<SampleSource> (*make)(const SourceRequest& request);
};
std::span<const SourceEntry> known_sources();

}  // namespace lockstep
