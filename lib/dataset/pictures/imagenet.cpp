#include "dataset/pictures/imagenet.hpp"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string_view>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/text/number.hpp"
#include "base/text/printable.hpp"
#include "dataset/pictures/class_folders.hpp"
#include "dataset/pictures/tar_file.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* ground_truth_file = "ILSVRC2012_validation_ground_truth.txt";
constexpr std::string_view validation_prefix = "ILSVRC2012_val_";
constexpr std::size_t text_limit_bytes = std::size_t{1} << 26;

// Empty if none of the kit's folders contains the file.
fs::path in_kit(const fs::path& folder, const char* file) {
  for (const char* const part : {"", "data", "ILSVRC2012_devkit_t12/data", "ILSVRC2012_devkit_t12", "devkit/data"}) {
    if (!is_absent(folder / part / file)) return folder / part / file;
  }
  return {};
}

ClassNumbers class_numbers(const fs::path& folder, const MetaMat& meta) {
  if (const fs::path file = meta_mat_in(folder); !file.empty()) {
    if (meta.fault) throw Error(*meta.fault);
    require(meta.classes.has_value(), Failure::other,
            "'{}' was not read when the program started: it did not exist yet, or another process was rank 0. Run the "
            "program again.",
            file.string());
    return *meta.classes;
  }
  const fs::path map = in_kit(folder, "map_clsloc.txt");
  require(!map.empty(), Failure::usage,
          "'{}' has neither meta.mat nor map_clsloc.txt. The labels of validation pictures are the development kit's "
          "own class numbers, which these files explain. Copy the kit's data/ there.",
          folder.string());
  return read_map_clsloc(map);
}

// "ILSVRC2012_val_00000017.JPEG" gives 17.
std::optional<std::int64_t> validation_number(std::string_view name) {
  if (!name.starts_with(validation_prefix)) return std::nullopt;
  name = name.substr(validation_prefix.size());
  return parse_number<std::int64_t>(name.substr(0, name.find('.')), {1, 1'000'000'000});
}

// Assigns labels to validation pictures.
class ValidationLabels {
 public:
  explicit ValidationLabels(const PictureList& list)
      : classes_of_pictures_(read_validation_classes(list.folder, list.meta_mat)), classes_(list.classes) {}

  std::int32_t label_of(const fs::path& picture) const {
    const std::optional<std::int64_t> number = validation_number(picture.filename().string());
    if (!number || *number > std::ssize(classes_of_pictures_)) {
      throw Error(Failure::bad_data,
                  fmt::format("'{}' is not a validation picture that the development kit labels. It labels {}, with "
                              "names like ILSVRC2012_val_00000001.JPEG. Remove the file.",
                              printable(picture.string()), classes_of_pictures_.size()));
    }
    const std::string& name = classes_of_pictures_[static_cast<std::size_t>(*number - 1)];
    const auto found = std::ranges::lower_bound(classes_, name);
    require(found != classes_.end() && *found == name, Failure::bad_data,
            "'{}' has class {}, but no training picture has this class. Check that all training pictures are there.",
            printable(picture.string()), name);
    return static_cast<std::int32_t>(found - classes_.begin());
  }

 private:
  std::vector<std::string> classes_of_pictures_;
  const std::vector<std::string>& classes_;
};

void add_train_archive(PictureList& list) {
  const TarFile tar(list.folder / imagenet_train_archive);
  std::vector<TarEntry> of_classes = tar.entries(tar.whole());
  std::ranges::sort(of_classes, {}, &TarEntry::name);
  for (const TarEntry& entry : of_classes) {
    const fs::path name = entry.name;
    require(name.extension() == ".tar" && is_class_name(name.stem().string()), Failure::bad_data,
            "'{}' contains '{}', which is not the archive of a class, such as n01440764.tar. Check that it is "
            "ImageNet's training archive.",
            (list.folder / imagenet_train_archive).string(), printable(entry.name));
    const auto label = static_cast<std::int32_t>(list.classes.size());
    list.classes.push_back(name.stem().string());
    for (const TarEntry& picture : tar.entries(entry.content)) {
      list.train.push_back({(imagenet_train_archive / name / picture.name).string(), picture.content.bytes, label, 0,
                            picture.content.begin});
    }
  }
}

}  // namespace

void add_imagenet_archives(PictureList& list) {
  require(!is_absent(list.folder / imagenet_validation_archive), Failure::usage,
          "'{}' contains {} but not {}. Without it, there is no test set. Put it there too.", list.folder.string(),
          imagenet_train_archive, imagenet_validation_archive);
  // Reports missing kit files now, before a million headers are read.
  read_validation_classes(list.folder, list.meta_mat);
  log::info("'{}': listing the pictures in its archives, which takes minutes for ImageNet", list.folder.string());
  list.archives = {imagenet_train_archive, imagenet_validation_archive};
  add_train_archive(list);
  const ValidationLabels labels(list);
  const TarFile tar(list.folder / imagenet_validation_archive);
  for (const TarEntry& picture : tar.entries(tar.whole())) {
    const fs::path name = fs::path(imagenet_validation_archive) / picture.name;
    list.test.push_back({name.string(), picture.content.bytes, labels.label_of(name), 1, picture.content.begin});
  }
}

void add_imagenet_validation(const fs::path& part, const PictureStorage& storage, PictureList& list,
                             std::vector<PictureFile>& files) {
  add_class_folders(part, {""}, storage, list, files);
  const ValidationLabels labels(list);
  for (PictureFile& file : files) file.label = labels.label_of(file.name);
}

bool is_imagenet_validation_name(std::string_view file) { return file.starts_with(validation_prefix); }

bool is_imagenet_kit_name(std::string_view name) {
  return name.starts_with("ILSVRC2012_") || name == "data" || name == "devkit" || name == "meta.mat" ||
         name == "map_clsloc.txt";
}

fs::path meta_mat_in(const fs::path& folder) { return in_kit(folder, "meta.mat"); }

std::vector<std::string> read_validation_classes(const fs::path& folder, const MetaMat& meta) {
  const fs::path file = in_kit(folder, ground_truth_file);
  require(!file.empty(), Failure::usage,
          "'{}' contains validation pictures without class folders, and no {}. So their classes are unknown. Put the "
          "development kit's data/ there, or sort the pictures into class folders.",
          folder.string(), ground_truth_file);
  const ClassNumbers classes = class_numbers(folder, meta);
  std::vector<std::string> of_pictures;
  std::istringstream lines(read_file(file, text_limit_bytes));
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    const auto number = parse_number<std::int64_t>(line, {1, 1'000'000});
    const auto found = number ? classes.find(*number) : classes.end();
    require(found != classes.end(), Failure::bad_data,
            "line {} of '{}' is not the number of a class: '{}'. Download the file again.", of_pictures.size() + 1,
            file.string(), printable(line.substr(0, 100)));
    of_pictures.push_back(found->second);
  }
  return of_pictures;
}

ClassNumbers read_map_clsloc(const fs::path& file) {
  ClassNumbers classes;
  std::istringstream lines(read_file(file, text_limit_bytes));
  std::int64_t number_of_line = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number_of_line;
    std::istringstream words(line);
    std::string name;
    std::string text;
    words >> name >> text;
    const auto number = parse_number<std::int64_t>(text, {1, 1'000'000});
    require(
        is_class_name(name) && number && classes.emplace(*number, name).second, Failure::bad_data,
        "line {} of '{}' is not a class and its number, such as 'n02119789 1 kit_fox': '{}'. Download the file again.",
        number_of_line, file.string(), printable(line.substr(0, 100)));
  }
  return classes;
}

}  // namespace lockstep
