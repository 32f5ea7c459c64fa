#include "dataset/pictures/listing/listing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/random.hpp"
#include "base/text/printable.hpp"
#include "dataset/pictures/imagenet.hpp"
#include "dataset/pictures/list_file.hpp"
#include "dataset/pictures/listing/folder_layout.hpp"
#include "dataset/pictures/listing/folder_names.hpp"
#include "dataset/pictures/listing/summary.hpp"
#include "dataset/pictures/listing/unsupported_layouts.hpp"
#include "dataset/sources/file_list.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* validation_list = "val.list";

// A random permutation of 0 ... files - 1, drawn by `seed`.
std::vector<std::size_t> drawn_order(std::size_t files, std::uint64_t seed, SourceSplit split) {
  std::vector<std::size_t> order(files);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::uint64_t stream = stream_counter(Stream::pictures, static_cast<std::int64_t>(split));
  std::vector<std::uint64_t> draws(files);
  for (std::size_t at = 0; at < files; ++at) {
    const auto message = philox(seed, stream, at);
    draws[at] = std::uint64_t{message[0]} << 32 | message[1];
  }
  std::ranges::sort(order, {}, [&](std::size_t at) { return std::pair(draws[at], at); });
  return order;
}

void shuffle(PictureList& list, std::uint64_t seed, SourceSplit split) {
  std::vector<PictureFile>& files = list.files(split);
  std::vector<PictureFile> shuffled;
  shuffled.reserve(files.size());
  for (const std::size_t at : drawn_order(files.size(), seed, split)) shuffled.push_back(std::move(files[at]));
  files = std::move(shuffled);
}

// Holds out the first tenth of each class in the shuffled order, rounded down, but at least one of two or more
// pictures.
void hold_out_tenth(PictureList& list) {
  std::vector<std::int64_t> counts = counts_by_class(list, SourceSplit::train, CountedFiles::all);
  std::vector<PictureFile> kept;
  for (PictureFile& file : list.train) {
    std::int64_t& count = counts[static_cast<std::size_t>(file.label)];
    // Counts are replaced by the negated number of pictures that are still to be held out.
    if (count > 0) count = -(count == 1 ? 0 : std::max<std::int64_t>(count / 10, 1));
    (count < 0 ? list.test : kept).push_back(std::move(file));
    if (count < 0) ++count;
  }
  list.train = std::move(kept);
}

bool is_there(const fs::path& folder, const char* file) { return !is_absent(folder / file); }

void add_lists(PictureList& list) {
  const auto if_there = [&](const char* file) { return is_there(list.folder, file) ? file : ""; };
  ListFiles files{train_list, if_there(validation_list), if_there(test_list)};
  // A validation split without a test split serves as the test split.
  if (files.test.empty()) std::swap(files.validation, files.test);
  list.train_origin = train_list;
  list.validation_origin = files.validation.string();
  list.test_origin = files.test.string();
  add_list_files(files, list);
}

void add_archives(PictureList& list) {
  list.train_origin = imagenet_train_archive;
  list.test_origin = imagenet_validation_archive;
  add_imagenet_archives(list);
}

// A test list requires a training list.
void require_no_test_list_alone(const fs::path& folder) {
  for (const char* const file : {test_list, validation_list}) {
    require(!is_there(folder, file), Failure::usage,
            "'{}' has no train.list beside it. A test set needs the training set that it was made with. Write "
            "train.list too.",
            (folder / file).string());
  }
}

PictureStorage with_plain_names(PictureStorage storage, const fs::path& folder) {
  for (std::string& name : storage.skipped) {
    const fs::path plain = (fs::path(name) / "").lexically_normal().parent_path();
    const bool is_inside = !plain.empty() && plain.is_relative() && *plain.begin() != "." && *plain.begin() != "..";
    require(is_inside && is_there(folder, plain.c_str()), Failure::usage,
            "'{}' is not in '{}' (--skip). Give the path of a file or folder relative to --source.", printable(name),
            printable(folder.string()));
    name = plain.string();
  }
  return storage;
}

void require_no_skipped(const PictureStorage& storage, const char* source) {
  require(storage.skipped.empty(), Failure::usage,
          "--skip works only for folders, but '{}' is read here. Remove the lines or files from it instead.", source);
}

void add_pictures(const PictureStorage& storage, PictureList& list) {
  if (is_there(list.folder, train_list)) {
    require_no_skipped(storage, train_list);
    return add_lists(list);
  }
  if (is_there(list.folder, imagenet_train_archive)) {
    require_no_skipped(storage, imagenet_train_archive);
    return add_archives(list);
  }
  require_no_test_list_alone(list.folder);
  add_folders(storage, list);
}

// Advice if no picture was found in a class.
std::string advice_for(const PictureList& list) {
  std::string advice = other_layout_message(list.folder);
  const auto loose = std::ranges::find_if(list.remarks, [](const OddFile& odd) { return may_be_picture(odd.file); });
  if (advice.empty() && loose != list.remarks.end()) advice = label_table_message(list.folder, loose->file);
  return advice;
}

void require_pictures(const PictureList& list) {
  if (!list.train.empty()) return;
  const std::string advice = advice_for(list);
  const std::vector<std::string> left_out = left_out_lines(list);
  const bool tells_left_out = !left_out.empty() && advice.empty();
  throw Error(
      Failure::usage,
      fmt::format("'{}' contains no pictures in class folders (--source){}. {}", printable(list.folder.string()),
                  tells_left_out ? fmt::format("; left out: {}", fmt::join(left_out, "; ")) : "",
                  advice.empty() ? "It must contain one folder of pictures per class, or train/ and test/ with such "
                                   "folders, or train.list."
                                 : advice));
}

// With one class every prediction is correct.
void require_several_classes(const PictureList& list, const PictureStorage& storage) {
  if (storage.allows(Oddity::one_class)) return;
  std::vector<std::int64_t> counts(list.classes.size());
  for (const SourceSplit split : {SourceSplit::train, SourceSplit::test}) {
    const std::vector<std::int64_t> more = counts_by_class(list, split, CountedFiles::pictures);
    std::ranges::transform(counts, more, counts.begin(), std::plus{});
  }
  const auto first = std::ranges::find_if(counts, [](std::int64_t count) { return count > 0; });
  if (std::ranges::count_if(counts, [](std::int64_t count) { return count > 0; }) != 1) return;
  const auto label = static_cast<std::size_t>(first - counts.begin());
  const std::string table = label_table_message(list.folder, list.train.front().name);
  throw Error(
      Failure::usage,
      fmt::format("'{}' has only one class with pictures, '{}'. Every prediction would be right. {} If one class is "
                  "intended, add --allow one-class.",
                  printable(list.folder.string()), printable(list.classes[label]),
                  table.empty() ? "Pass a folder that contains one folder of pictures per class as --source." : table));
}

void require_learned_classes(const PictureList& list, const PictureStorage& storage) {
  if (storage.allows(Oddity::untrained_classes)) return;
  const std::vector<std::int64_t> learned = counts_by_class(list, SourceSplit::train, CountedFiles::pictures);
  for (const auto* const files : {&list.test, &list.validation}) {
    for (const PictureFile& file : *files) {
      const auto label = static_cast<std::size_t>(file.label);
      require(learned[label] > 0 || !may_be_picture(file.name), Failure::usage,
              "class '{}' has no training pictures, but '{}' would test it. A class can only be tested if it has "
              "training pictures. Add training pictures, or --allow untrained-classes.",
              printable(list.classes[label]), printable(file.name));
    }
  }
}

}  // namespace

PictureList list_pictures(const fs::path& folder, const PictureStorage& storage, std::uint64_t seed,
                          const MetaMat& meta) {
  std::error_code reason;
  require(fs::is_directory(folder, reason), Failure::usage,
          "'{}' is not a directory (--source). Pass a folder that contains one folder of pictures per class.",
          folder.string());
  PictureList list;
  list.folder = folder;
  list.meta_mat = meta;
  add_pictures(with_plain_names(storage, folder), list);
  require_pictures(list);
  shuffle(list, seed, SourceSplit::train);
  shuffle(list, seed, SourceSplit::validation);
  if (list.test.empty()) {
    hold_out_tenth(list);
    list.test_origin = drawn_test;
  }
  shuffle(list, seed, SourceSplit::test);
  require(!list.test.empty(), Failure::usage,
          "'{}' has one picture per class, so none is left for a test. Add pictures, or a folder test/.",
          folder.string());
  require_several_classes(list, storage);
  require_learned_classes(list, storage);
  return list;
}

}  // namespace lockstep
