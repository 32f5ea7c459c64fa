#include "dataset/pictures/listing/folder_layout.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text/counted.hpp"
#include "base/text/printable.hpp"
#include "dataset/pictures/class_folders.hpp"
#include "dataset/pictures/imagenet.hpp"
#include "dataset/pictures/listing/folder_names.hpp"
#include "dataset/pictures/listing/tiny_imagenet.hpp"
#include "dataset/pictures/listing/unsupported_layouts.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

constexpr int max_wrappers = 8;

// A folder on the path to the class folders.
struct Level {
  fs::path part;  // relative to the list's folder
  FolderContents contents;
};

using SplitGroup = std::map<Split, Names>;

// Split folders, grouped by the stem of their names.
std::map<std::string, SplitGroup> split_groups(const Names& folders) {
  std::map<std::string, SplitGroup> groups;
  for (const std::string& name : folders) {
    if (const auto split = split_name_of(name)) groups[split->stem][split->split].push_back(name);
  }
  return groups;
}

// "seg_train" alone is not a split; "train" is.
bool says_splits(const std::string& stem, const SplitGroup& group) { return stem.empty() || group.size() > 1; }

bool contains(const Names& names, const std::string& name) { return std::ranges::find(names, name) != names.end(); }

class FolderLayout {
 public:
  FolderLayout(const PictureStorage& storage, PictureList& list) : storage_(storage), list_(list) {}

  void read() {
    const Level level = unwrapped_root();
    if (const std::optional<SplitGroup> splits = splits_in(level)) {
      add_splits(level, *splits);
    } else {
      add_classes(level);
    }
  }

 private:
  Level level_of(const fs::path& part) const { return {part, contents_of(part, storage_, list_)}; }
  std::string path_of(const fs::path& part) const {
    return printable((part.empty() ? list_.folder : list_.folder / part).string());
  }

  static bool has_train(const Level& level) {
    return std::ranges::any_of(split_groups(level.contents.folders), [](const auto& group) {
      return says_splits(group.first, group.second) && group.second.contains(Split::train);
    });
  }

  // The only folder in `level`, if `level` can be a wrapper.
  std::optional<Level> inside_of(const Level& level) const {
    if (level.contents.folders.size() != 1 || level.contents.has_pictures()) return std::nullopt;
    return level_of(level.part / level.contents.folders.front());
  }

  Level unwrapped_root() {
    Level level = level_of("");
    for (int depth = 0; depth < max_wrappers && !has_train(level); ++depth) {
      std::optional<Level> inside = inside_of(level);
      if (!inside) break;
      require_no_source_inside(*inside);
      if (inside->contents.folders.empty() || inside->contents.has_pictures()) break;
      const bool is_split = split_name_of(level.contents.folders.front()).has_value();
      if (!has_train(*inside) && (is_split || storage_.allows(Oddity::one_class))) break;
      note_others(level, level.contents.folders);
      level = std::move(*inside);
    }
    if (!level.part.empty()) note_wrapper(level, path_of(""));
    return level;
  }

  void note_wrapper(const Level& level, const std::string& around) {
    list_.notes.push_back(fmt::format("'{}' contains only one folder: the classes are read from '{}'", around,
                                      printable(level.part.string())));
  }

  // Lists and archives are only supported in --source itself.
  void require_no_source_inside(const Level& level) const {
    for (const char* const name : {"train.list", imagenet_train_archive}) {
      require(!contains(level.contents.files, name), Failure::usage,
              "'{}' contains {}, which is read only directly in --source. Pass '{}' as --source.", path_of(level.part),
              name, path_of(level.part));
    }
  }

  // The split folders of `level`; std::nullopt if its folders are classes.
  std::optional<SplitGroup> splits_in(const Level& level) const {
    std::optional<SplitGroup> found;
    for (const auto& [stem, group] : split_groups(level.contents.folders)) {
      if (!says_splits(stem, group) || !group.contains(Split::train)) continue;
      if (found) {
        throw Error(Failure::usage, fmt::format("'{}' contains several training folders: '{}' and '{}'. Only one can "
                                                "be used. Leave out the others with --skip.",
                                                path_of(level.part), printable(found->at(Split::train).front()),
                                                printable(group.at(Split::train).front())));
      }
      found = group;
    }
    if (!found) return std::nullopt;
    for (const auto& [split, names] : *found) {
      require(
          names.size() == 1, Failure::usage,
          "'{}' and '{}' in '{}' both have the name of a {} split. Only one can be used. Leave one out with --skip.",
          printable(names.front()), printable(names.back()), path_of(level.part), split_name(split));
    }
    const Level train = level_of(level.part / found->at(Split::train).front());
    if (!train.contents.folders.empty() || !train.contents.has_pictures()) return found;
    if (storage_.allows(Oddity::split_names)) return std::nullopt;
    throw Error(
        Failure::usage,
        fmt::format("'{}' contains pictures but no class folders, so their classes are unknown. {}{}",
                    path_of(train.part), flat_layout_message(train),
                    level.contents.folders.size() > found->size()
                        ? fmt::format(" If '{}' is a class, add --allow split-names.", printable(train.part.string()))
                        : ""));
  }

  std::string flat_layout_message(const Level& train) const {
    const auto picture = std::ranges::find_if(train.contents.files, may_be_picture);
    const std::string table = label_table_message(list_.folder, train.part / *picture);
    return table.empty()
               ? "Put them into one folder per class, or write train.list with a path and a label on each line."
               : table;
  }

  void add_splits(const Level& level, const SplitGroup& splits) {
    const Level train = unwrapped(level_of(level.part / splits.at(Split::train).front()), SplitFolder::train);
    require_no_split_names(train);
    require_pictures_in_classes(train);
    list_.classes = train.contents.folders;
    list_.train_origin = train.part.string();
    add_class_folders(train.part, list_.classes, storage_, list_, list_.train);
    note_others(train, list_.classes);
    Names taken;
    for (const auto& [split, names] : splits) taken.push_back(names.front());
    std::vector<fs::path> parts;
    Names unlabelled;
    for (const Split split : {Split::validation, Split::test}) {
      if (!splits.contains(split)) continue;
      const fs::path part = level.part / splits.at(split).front();
      std::vector<PictureFile> files = labelled_pictures(part, unlabelled, taken);
      if (files.empty()) continue;
      parts.push_back(part);
      // A validation split without a test split serves as the test split.
      list_.validation = std::move(list_.test);
      list_.test = std::move(files);
    }
    if (!parts.empty()) list_.test_origin = parts.back().string();
    if (parts.size() > 1) list_.validation_origin = parts.front().string();
    require(!parts.empty() || unlabelled.empty(), Failure::usage,
            "'{}' contains pictures without class folders, so their classes are unknown. If you leave it out with "
            "--skip, a tenth of each class is held out for the test. Or put its pictures into class folders.",
            unlabelled.empty() ? "" : path_of(unlabelled.front()));
    note_others(level, taken);
  }

  // The pictures of a validation or test folder. Empty if it has no pictures or no labels, which a remark states.
  std::vector<PictureFile> labelled_pictures(const fs::path& part, Names& unlabelled, Names& taken) {
    std::vector<PictureFile> files;
    const Level whole = level_of(part);
    if (contains(whole.contents.files, annotations_file)) {
      add_annotated_pictures(part, storage_, list_, files);
      return files;
    }
    const Level level = unwrapped(whole, SplitFolder::other);
    const FolderContents& contents = level.contents;
    if (!contents.folders.empty()) {
      for (const std::string& name : contents.folders) require_class(level.part, name);
      add_class_folders(level.part, list_.classes, storage_, list_, files);
      note_others(level, list_.classes);
    } else if (std::ranges::any_of(contents.files, is_imagenet_validation_name)) {
      add_imagenet_validation(level.part, storage_, list_, files);
      const FolderContents kit = contents_of("", storage_, list_);
      for (const Names& names : {kit.folders, kit.files}) {
        std::ranges::copy_if(names, std::back_inserter(taken), is_imagenet_kit_name);
      }
    } else if (contents.has_pictures()) {
      unlabelled.push_back(part.string());
      const auto pictures = std::ranges::count_if(contents.files, may_be_picture);
      leave_out(part, fmt::format("has no class folders, so nothing labels its {}", counted(pictures, "picture")));
      return files;
    }
    if (files.empty()) leave_out(part, "contains no pictures");
    return files;
  }

  void leave_out(const fs::path& name, const std::string& why) { list_.remarks.push_back({name.string(), true, why}); }

  void require_class(const fs::path& part, const std::string& name) const {
    if (std::ranges::binary_search(list_.classes, name)) return;
    throw Error(Failure::usage,
                fmt::format("'{}' is a class that '{}' does not have. A class can only be tested if it has training "
                            "pictures. {}Move it, or leave it out with --skip.",
                            path_of(part / name), path_of(list_.train_origin), look_alike_hint(name, list_.classes)));
  }

  enum class SplitFolder : std::uint8_t { train, other };

  // The folder inside a split folder that contains the class folders: "train/train", "test/images".
  Level unwrapped(Level level, SplitFolder kind) {
    const fs::path whole = level.part;
    const bool is_train = kind == SplitFolder::train;
    for (int depth = 0; depth < max_wrappers && !(is_train && storage_.allows(Oddity::one_class)); ++depth) {
      std::optional<Level> inside = inside_of(level);
      if (!inside) break;
      const std::string& name = level.contents.folders.front();
      const FolderContents& contents = inside->contents;
      const bool holds_classes = !contents.folders.empty() && !contents.has_pictures();
      const bool holds_unlabelled = !is_train && contents.folders.empty() && is_container_name(name);
      if ((!is_train && contains(list_.classes, name)) || (!holds_classes && !holds_unlabelled)) break;
      note_others(level, level.contents.folders);
      level = std::move(*inside);
    }
    if (level.part != whole && !level.contents.folders.empty()) note_wrapper(level, path_of(whole));
    return level;
  }

  void add_classes(const Level& level) {
    if (!storage_.allows(Oddity::split_names)) require_no_test_alone(level);
    require_no_split_names(level);
    require_pictures_in_classes(level);
    list_.classes = level.contents.folders;
    list_.train_origin = level.part.empty() ? "the class folders" : level.part.string();
    add_class_folders(level.part, list_.classes, storage_, list_, list_.train);
    note_others(level, list_.classes);
  }

  // A test folder must not become a class.
  void require_no_test_alone(const Level& level) const {
    for (const std::string& name : level.contents.folders) {
      const auto split = split_name_of(name);
      if (!split || !split->stem.empty() || level_of(level.part / name).contents.folders.empty()) continue;
      throw Error(Failure::usage,
                  fmt::format("'{0}' has the name of a split and contains folders, but there is no train/ beside it. "
                              "It would become one class. Pass '{0}' itself as --source, and test its training split "
                              "with evaluate --split train. If it is a class, add --allow split-names.",
                              path_of(level.part / name)));
    }
  }

  void require_no_split_names(const Level& level) const {
    if (storage_.allows(Oddity::split_names)) return;
    for (const auto& [stem, group] : split_groups(level.contents.folders)) {
      if (!says_splits(stem, group)) continue;
      throw Error(
          Failure::usage,
          fmt::format("'{}' has the name of a {} split, but is a class folder here. If it is a class, add --allow "
                      "split-names. If not, leave it out with --skip.",
                      path_of(level.part / group.begin()->second.front()), split_name(group.begin()->first)));
    }
  }

  // If all folders contain only folders, they may be kinds of pictures, or groups of classes.
  void require_pictures_in_classes(const Level& level) const {
    const Names& folders = level.contents.folders;
    if (folders.size() < 2 || storage_.allows(Oddity::nested_classes)) return;
    const bool are_nested = std::ranges::all_of(folders, [&](const std::string& name) {
      const FolderContents inside = contents_of(level.part / name, storage_, list_);
      return inside.folders.size() > 1 && !inside.has_pictures();
    });
    require(!are_nested, Failure::usage,
            "all {} folders of '{}', such as '{}', contain folders and no pictures. Each would become one class. Pass "
            "one of them as --source, or add --allow nested-classes.",
            folders.size(), path_of(level.part), printable(folders.front()));
  }

  void note_others(const Level& level, const Names& taken) {
    const FolderContents& contents = level.contents;
    list_.remarks.insert(list_.remarks.end(), contents.left_out.begin(), contents.left_out.end());
    for (const Names& names : {contents.folders, contents.files}) {
      for (const std::string& name : names) {
        if (contains(taken, name)) continue;
        leave_out(level.part / name, "is outside the class folders");
      }
    }
  }

  const PictureStorage& storage_;
  PictureList& list_;
};

}  // namespace

void add_folders(const PictureStorage& storage, PictureList& list) { FolderLayout(storage, list).read(); }

}  // namespace lockstep
