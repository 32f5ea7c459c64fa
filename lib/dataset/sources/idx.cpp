#include <algorithm>
#include <array>
#include <cassert>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/system_failure.hpp"
#include "dataset/shards/hash.hpp"
#include "dataset/sources/idx_file.hpp"
#include "dataset/sources/sample_source.hpp"
#include "dataset/sources/unsupported_formats.hpp"

namespace lockstep {
namespace {

// One split of an IDX data set.
struct IdxPart {
  std::filesystem::path labels_path;
  IdxFile images;
  IdxFile labels;

  std::string hash() const {
    return xxh3_128_hex(std::as_bytes(std::span(images.values))) +
           xxh3_128_hex(std::as_bytes(std::span(labels.values)));
  }
  // Minimum number of classes that a network needs.
  std::size_t classes() const { return largest_label() + 1U; }
  std::uint8_t largest_label() const { return labels.value(first_with_largest_label()); }
  std::size_t first_with_largest_label() const {
    std::size_t first = 0;
    for (std::size_t sample = 1; sample < labels.dims[0]; ++sample) {
      if (labels.value(sample) > labels.value(first)) first = sample;
    }
    return first;
  }
};

struct IdxPaths {
  std::filesystem::path images;
  std::filesystem::path labels;
};

IdxPart open_part(const IdxPaths& paths) {
  IdxPart opened = {paths.labels, read_idx_images(paths.images), read_idx_labels(paths.labels)};
  require(opened.images.dims[0] == opened.labels.dims[0], Failure::bad_data,
          "'{}' has {} labels for {} images. Download both files again.", paths.labels.string(), opened.labels.dims[0],
          opened.images.dims[0]);
  return opened;
}

class IdxSource final : public SampleSource {
 public:
  IdxSource(SourceDescription description, IdxPart train, IdxPart test)
      : description_(std::move(description)), train_(std::move(train)), test_(std::move(test)) {
    const std::vector<std::size_t>& dims = train_.images.dims;
    require(
        dims[1] == test_.images.dims[1] && dims[2] == test_.images.dims[2], Failure::bad_data,
        "the training images and the test images in '{}' have different sizes. Check that they are from one data set.",
        test_.labels_path.parent_path().string());
    description_.shape = {static_cast<std::int64_t>(dims[1]), static_cast<std::int64_t>(dims[2]), 1};
    assert(train_.classes() <= description_.classes.size() && test_.classes() <= description_.classes.size());
  }

  const SourceDescription& description() const override { return description_; }
  std::int64_t samples(SourceSplit split) const override {
    return static_cast<std::int64_t>(part(split).images.dims[0]);
  }

  std::string content_hash() const override { return train_.hash() + test_.hash(); }

  std::optional<std::int32_t> read(SourceSplit split, std::int64_t index, SourceSample& sample) const override {
    OwnedPicture& picture = sample.picture;
    assert(index >= 0 && index < samples(split));
    const IdxPart& from = part(split);
    const auto at = static_cast<std::size_t>(index);
    picture.size = {description_.shape.height, description_.shape.width};
    picture.pixels.resize(static_cast<std::size_t>(picture.size.height * picture.size.width));
    for (std::size_t pixel = 0; pixel < picture.pixels.size(); ++pixel) {
      picture.pixels[pixel] = from.images.value(at * picture.pixels.size() + pixel);
    }
    return from.labels.value(at);
  }

 private:
  const IdxPart& part(SourceSplit split) const { return split == SourceSplit::train ? train_ : test_; }

  SourceDescription description_;
  IdxPart train_;
  IdxPart test_;
};

void require_folder(const std::filesystem::path& directory) {
  std::error_code reason;
  if (std::filesystem::is_regular_file(directory, reason)) refuse_unsupported_formats(directory);
  require(std::filesystem::is_directory(directory, reason), Failure::usage,
          "'{}' is not a directory (--source). Pass the folder that contains train-images-idx3-ubyte.",
          directory.string());
}

std::vector<std::string> numbered_classes(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t label = 0; label < count; ++label) names.push_back(fmt::format("{}", label));
  return names;
}

// The four files of a data set.
enum class IdxRole : std::uint8_t { train_images, train_labels, test_images, test_labels };
struct IdxEnding {
  std::string_view text;
  IdxRole role;
};
constexpr std::array idx_endings = {IdxEnding{"train-images-idx3-ubyte", IdxRole::train_images},
                                    IdxEnding{"train-images.idx3-ubyte", IdxRole::train_images},
                                    IdxEnding{"train-labels-idx1-ubyte", IdxRole::train_labels},
                                    IdxEnding{"train-labels.idx1-ubyte", IdxRole::train_labels},
                                    IdxEnding{"train-labels-idx2-int", IdxRole::train_labels},
                                    IdxEnding{"test-images-idx3-ubyte", IdxRole::test_images},
                                    IdxEnding{"test-images.idx3-ubyte", IdxRole::test_images},
                                    IdxEnding{"t10k-images-idx3-ubyte", IdxRole::test_images},
                                    IdxEnding{"t10k-images.idx3-ubyte", IdxRole::test_images},
                                    IdxEnding{"test-labels-idx1-ubyte", IdxRole::test_labels},
                                    IdxEnding{"test-labels.idx1-ubyte", IdxRole::test_labels},
                                    IdxEnding{"t10k-labels-idx1-ubyte", IdxRole::test_labels},
                                    IdxEnding{"t10k-labels.idx1-ubyte", IdxRole::test_labels},
                                    IdxEnding{"test-labels-idx2-int", IdxRole::test_labels}};  // QMNIST

// File names without .gz.
using IdxNames = std::map<IdxRole, std::set<std::string>>;

// Data sets in a folder, keyed by the prefix of their file names without the separator.
std::map<std::string, IdxNames> sets_in(const std::filesystem::path& directory) {
  std::map<std::string, IdxNames> sets;
  std::error_code reason;
  for (std::filesystem::directory_iterator entry(directory, reason), end; !reason && entry != end;
       entry.increment(reason)) {
    std::string name = entry->path().filename().string();
    if (name.ends_with(".gz")) name.resize(name.size() - 3);
    const auto* const ending =
        std::ranges::find_if(idx_endings, [&](const IdxEnding& one) { return name.ends_with(one.text); });
    if (ending == idx_endings.end()) continue;
    std::string prefix = name.substr(0, name.size() - ending->text.size());
    if (!prefix.empty() && std::string_view("-_.").find(prefix.back()) != std::string_view::npos) prefix.pop_back();
    sets[prefix][ending->role].insert(name);
  }
  if (reason) {
    throw system_failure(fmt::format("cannot list the folder '{}'", directory.string()), reason.value(),
                         Access::reading, "--source");
  }
  return sets;
}

// QMNIST's files have names that differ from MNIST's.
void refuse_qmnist(const std::map<std::string, IdxNames>& sets, const std::filesystem::path& directory) {
  require(sets.contains("") || !sets.contains("qmnist"), Failure::usage,
          "'{}' contains QMNIST ('qmnist-train-images-idx3-ubyte' and others), whose file names differ from MNIST's. "
          "Run 'make_shards idx'.",
          directory.string());
}

std::string quoted_prefixes(const std::map<std::string, IdxNames>& sets) {
  std::string text;
  for (const auto& [prefix, names] : sets) text += fmt::format("{}'{}'", text.empty() ? "" : ", ", prefix);
  return text;
}

std::pair<std::string, IdxNames> chosen_set(const std::filesystem::path& directory,
                                            const std::optional<std::string>& prefix) {
  const std::map<std::string, IdxNames> sets = sets_in(directory);
  if (sets.empty()) refuse_unsupported_formats(directory);
  require(!sets.empty(), Failure::usage,
          "'{}' contains no IDX files. Their names end in train-images-idx3-ubyte and the like, with or without .gz. "
          "Pass the folder that contains them as --source.",
          directory.string());
  require(
      prefix || sets.size() == 1, Failure::usage,
      "'{}' contains {} sets of IDX files, with the prefixes {}. Only one can be converted. Choose it with --prefix.",
      directory.string(), sets.size(), quoted_prefixes(sets));
  if (!prefix) return *sets.begin();
  const auto found = sets.find(*prefix);
  require(found != sets.end(), Failure::usage,
          "'{}' contains no IDX files with the prefix '{}' (--prefix). Available prefixes: {}.", directory.string(),
          *prefix, quoted_prefixes(sets));
  return *found;
}

// `message` describes the file.
std::filesystem::path only_file(const std::filesystem::path& directory, const IdxNames& names, IdxRole role,
                                std::string_view message) {
  const auto found = names.find(role);
  require(found != names.end(), Failure::usage,
          "the set of IDX files in '{}' has no {}. A set has images and labels, for training and for the test. Put the "
          "missing files beside it.",
          directory.string(), message);
  require(found->second.size() == 1, Failure::usage,
          "'{}' and '{}' in '{}' could both be the {}. A set of IDX files has only one. Move one of them elsewhere.",
          *found->second.begin(), *std::next(found->second.begin()), directory.string(), message);
  return directory / *found->second.begin();
}

// Number of classes of an IdxSet.
std::size_t class_count(const IdxSet& set, const IdxPart& train, const IdxPart& test) {
  if (!set.classes) {
    require(test.classes() <= train.classes(), Failure::bad_data,
            "sample {} of '{}' has label {}, but the largest training label is {}. No training sample has this class. "
            "If there are more classes, pass --classes {}.",
            test.first_with_largest_label(), test.labels_path.string(), test.largest_label(), train.largest_label(),
            test.classes());
    return train.classes();
  }
  for (const IdxPart* const part : {&train, &test}) {
    require(std::cmp_less_equal(part->classes(), *set.classes), Failure::bad_data,
            "sample {} of '{}' has label {}, but with --classes {} the largest label is {}. Pass --classes {} or more, "
            "or leave it out.",
            part->first_with_largest_label(), part->labels_path.string(), part->largest_label(), *set.classes,
            *set.classes - 1, std::max(train.classes(), test.classes()));
  }
  return static_cast<std::size_t>(*set.classes);
}

// MNIST or Fashion-MNIST, which must have exactly ten classes.
std::unique_ptr<SampleSource> open_published(const std::filesystem::path& directory, SourceDescription description) {
  require_folder(directory);
  const auto opened = [&](const std::string& name) {
    return open_part({directory / (name + "-images-idx3-ubyte"), directory / (name + "-labels-idx1-ubyte")});
  };
  const std::map<std::string, IdxNames> sets = sets_in(directory);
  if (sets.empty()) refuse_unsupported_formats(directory);
  refuse_qmnist(sets, directory);
  IdxPart train = opened("train");
  IdxPart test = opened("t10k");
  const std::size_t classes = description.classes.size();
  for (const IdxPart* const part : {&train, &test}) {
    require(part->classes() <= classes, Failure::bad_data,
            "sample {} of '{}' has label {}, but {} has {} classes. If it is another data set, run 'make_shards idx' "
            "with --classes {} or more.",
            part->first_with_largest_label(), part->labels_path.string(), part->largest_label(), description.name,
            classes, part->classes());
  }
  require(train.classes() == classes, Failure::bad_data,
          "'{}' has no label above {}, but {} has {} classes. If it is another data set, run 'make_shards idx'. With "
          "--classes {}, the data set gets {} classes.",
          train.labels_path.string(), train.largest_label(), description.name, classes, classes, classes);
  description.source =
      fmt::format("{} (IDX files) from {}", description.name, std::filesystem::weakly_canonical(directory).string());
  return std::make_unique<IdxSource>(std::move(description), std::move(train), std::move(test));
}

}  // namespace

std::unique_ptr<SampleSource> open_mnist(const std::filesystem::path& directory) {
  return open_published(directory, SourceDescription{"mnist", "", {}, SampleKind::digit, numbered_classes(10)});
}

std::unique_ptr<SampleSource> open_fashion_mnist(const std::filesystem::path& directory) {
  return open_published(directory, SourceDescription{"fashion_mnist",
                                                     "",
                                                     {},
                                                     SampleKind::picture,
                                                     {"T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal",
                                                      "shirt", "sneaker", "bag", "ankle boot"}});
}

std::unique_ptr<SampleSource> open_idx_set(const std::filesystem::path& directory, const IdxSet& set) {
  require_folder(directory);
  const auto [prefix, names] = chosen_set(directory, set.prefix);
  const auto file = [&, &found = names](IdxRole role, std::string_view message) {
    return only_file(directory, found, role, message);
  };
  const IdxPaths train_paths = {file(IdxRole::train_images, "training images"),
                                file(IdxRole::train_labels, "training labels")};
  const IdxPaths test_paths = {file(IdxRole::test_images, "test images"), file(IdxRole::test_labels, "test labels")};
  IdxPart train = open_part(train_paths);
  IdxPart test = open_part(test_paths);
  const std::size_t classes = class_count(set, train, test);
  const std::string name = prefix.empty() ? "idx" : prefix;
  // Treated as handwriting, whose mirror image is not of the same class.
  SourceDescription description = {name,
                                   fmt::format("{} (IDX files, {} classes) from {}", name, classes,
                                               std::filesystem::weakly_canonical(directory).string()),
                                   {},
                                   SampleKind::digit,
                                   numbered_classes(classes)};
  return std::make_unique<IdxSource>(std::move(description), std::move(train), std::move(test));
}

}  // namespace lockstep
