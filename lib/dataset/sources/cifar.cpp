#include <array>
#include <cassert>
#include <span>
#include <sstream>
#include <system_error>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "dataset/shards/hash.hpp"
#include "dataset/sources/file_list.hpp"
#include "dataset/sources/sample_source.hpp"
#include "dataset/sources/unsupported_formats.hpp"

namespace lockstep {
namespace {

// CIFAR-10 and CIFAR-100 (https://www.cs.toronto.edu/~kriz/cifar.html): records of one or two label bytes and 32 x 32
// pixels, planar.
struct CifarVersion {
  const char* name;
  const char* form;  // for people
  std::size_t label_bytes;
  std::size_t label_at;  // index of the label byte that is used
  std::vector<const char*> train_files;
  std::int64_t train_file_samples;  // per published file
  const char* test_file;
  const char* names_file;
  std::vector<std::string> known_classes;  // used if the names file is missing
};

constexpr std::int64_t side = 32;
constexpr std::int64_t channels = 3;
constexpr std::size_t plane_bytes = side * side;
constexpr std::size_t image_bytes = plane_bytes * channels;
constexpr std::int64_t test_file_samples = 10000;
constexpr std::size_t file_limit_bytes = std::size_t{1} << 30;
constexpr std::size_t names_limit_bytes = std::size_t{1} << 16;

std::vector<std::string> class_names(const std::filesystem::path& directory, const CifarVersion& version) {
  const std::filesystem::path file = directory / version.names_file;
  if (is_absent(file)) return version.known_classes;
  std::vector<std::string> names;
  std::istringstream text(read_file(file, names_limit_bytes));
  for (std::string line; std::getline(text, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  require(names.size() == version.known_classes.size(), Failure::bad_data,
          "'{}' names {} classes instead of {}. Unpack the archive again.", file.string(), names.size(),
          version.known_classes.size());
  return names;
}

class CifarSource final : public SampleSource {
 public:
  CifarSource(const std::filesystem::path& directory, const CifarVersion& version)
      : record_bytes_(version.label_bytes + image_bytes),
        label_bytes_(version.label_bytes),
        label_at_(version.label_at) {
    std::error_code reason;
    const bool is_folder = std::filesystem::is_directory(directory, reason);
    const auto lists = is_folder ? read_file_lists(directory, version.test_file) : std::nullopt;
    if (!lists && is_absent(directory / version.train_files.front())) refuse_unsupported_formats(directory);
    require(is_folder, Failure::usage, "'{}' is not a directory (--source). Pass the folder that contains {}.",
            directory.string(), version.train_files.front());
    description_ = {version.name,
                    fmt::format("{} ({}{}) from {}", version.name, version.form, lists ? ", files in lists" : "",
                                std::filesystem::weakly_canonical(directory).string()),
                    {side, side, channels},
                    SampleKind::picture,
                    class_names(directory, version)};
    if (lists) {
      for (const auto& file : lists->train) train_ += read_records(file, 0);
      for (const auto& file : lists->test) test_ += read_records(file, 0);
      return;
    }
    for (const char* file : version.train_files) {
      train_ += read_records(directory / file, version.train_file_samples);
    }
    test_ = read_records(directory / version.test_file, test_file_samples);
  }

  const SourceDescription& description() const override { return description_; }

  std::int64_t samples(SourceSplit split) const override {
    return static_cast<std::int64_t>(records(split).size() / record_bytes_);
  }

  std::string content_hash() const override {
    const std::string names = fmt::format("{}", fmt::join(description_.classes, "\n"));
    std::string hashes;
    for (const std::string* const part : {&train_, &test_, &names}) {
      hashes += xxh3_128_hex(std::as_bytes(std::span(*part)));
    }
    return hashes;
  }

  std::optional<std::int32_t> read(SourceSplit split, std::int64_t index, SourceSample& sample) const override {
    OwnedPicture& picture = sample.picture;
    assert(index >= 0 && index < samples(split));
    picture.size = {description_.shape.height, description_.shape.width};
    picture.pixels.resize(image_bytes);
    const char* const record = records(split).data() + static_cast<std::size_t>(index) * record_bytes_;
    const char* const planes = record + label_bytes_;
    for (std::size_t pixel = 0; pixel < plane_bytes; ++pixel) {
      for (std::size_t channel = 0; channel < channels; ++channel) {
        picture.pixels[pixel * channels + channel] = static_cast<std::uint8_t>(planes[channel * plane_bytes + pixel]);
      }
    }
    return static_cast<std::uint8_t>(record[label_at_]);
  }

 private:
  const std::string& records(SourceSplit split) const { return split == SourceSplit::train ? train_ : test_; }

  // `published_samples`: 0 if the file is not a published one.
  std::string read_records(const std::filesystem::path& file, std::int64_t published_samples) const {
    std::string bytes = read_file(file, file_limit_bytes);
    refuse_pickled(file, bytes);
    require(!bytes.empty() && bytes.size() % record_bytes_ == 0, Failure::bad_data,
            "'{}' is truncated: {} bytes are not a multiple of {} bytes per sample. Unpack the archive again.",
            file.string(), bytes.size(), record_bytes_);
    const auto samples = static_cast<std::int64_t>(bytes.size() / record_bytes_);
    if (samples < published_samples) {
      log::info(
          "'{}' contains {} samples, but the published file has {}. Check that it is complete, unless you want only a "
          "part.",
          file.string(), samples, published_samples);
    }
    for (std::size_t at = 0; at < bytes.size(); at += record_bytes_) {
      const auto label = static_cast<std::uint8_t>(bytes[at + label_at_]);
      require(label < description_.classes.size(), Failure::bad_data,
              "sample {} of '{}' has label {}, but there are {} classes. Unpack the archive again.", at / record_bytes_,
              file.string(), label, description_.classes.size());
    }
    return bytes;
  }

  std::size_t record_bytes_;
  std::size_t label_bytes_;
  std::size_t label_at_;
  SourceDescription description_;
  std::string train_;
  std::string test_;
};

}  // namespace

std::unique_ptr<SampleSource> open_cifar10(const std::filesystem::path& directory) {
  const CifarVersion version = {
      "cifar10",
      "binary version",
      1,
      0,
      {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
      10000,
      "test_batch.bin",
      "batches.meta.txt",
      {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}};
  return std::make_unique<CifarSource>(directory, version);
}

std::unique_ptr<SampleSource> open_cifar100(const std::filesystem::path& directory, Cifar100Labels labels) {
  if (labels == Cifar100Labels::coarse) {
    const CifarVersion coarse = {"cifar100_coarse",
                                 "binary version, coarse labels",
                                 2,
                                 0,
                                 {"train.bin"},
                                 50000,
                                 "test.bin",
                                 "coarse_label_names.txt",
                                 {"aquatic_mammals",
                                  "fish",
                                  "flowers",
                                  "food_containers",
                                  "fruit_and_vegetables",
                                  "household_electrical_devices",
                                  "household_furniture",
                                  "insects",
                                  "large_carnivores",
                                  "large_man-made_outdoor_things",
                                  "large_natural_outdoor_scenes",
                                  "large_omnivores_and_herbivores",
                                  "medium_mammals",
                                  "non-insect_invertebrates",
                                  "people",
                                  "reptiles",
                                  "small_mammals",
                                  "trees",
                                  "vehicles_1",
                                  "vehicles_2"}};
    return std::make_unique<CifarSource>(directory, coarse);
  }
  CifarVersion fine = {"cifar100", "binary version",       2, 1, {"train.bin"}, 50000,
                       "test.bin", "fine_label_names.txt", {}};
  for (int i = 0; i < 100; ++i) fine.known_classes.push_back(fmt::format("class {}", i));
  return std::make_unique<CifarSource>(directory, fine);
}

}  // namespace lockstep
