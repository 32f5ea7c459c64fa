#include "dataset/pictures/picture_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <system_error>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/random.hpp"
#include "dataset/pictures/class_folders.hpp"
#include "dataset/pictures/imagenet.hpp"
#include "dataset/pictures/list_file.hpp"
#include "dataset/shards/hash.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

bool is_folder(const fs::path& path) {
  std::error_code reason;
  return fs::is_directory(path, reason);
}

// The first of `names` that is there; empty where none is.
template <typename IsThere>
fs::path first_of(const fs::path& folder, std::initializer_list<const char*> names, const IsThere& is_there) {
  for (const char* const name : names) {
    if (is_there(folder / name)) return name;
  }
  return {};
}

void list_split_folders(const fs::path& test, const PictureStorage& storage, PictureList& list) {
  list.classes = folders_in(list.folder / "train");
  add_class_folders("train", list.classes, storage, list, list.train);
  if (test.empty()) return;
  if (folders_in(list.folder / test).empty()) return add_imagenet_validation(test, storage, list);
  for (const std::string& name : folders_in(list.folder / test)) {
    require(std::ranges::binary_search(list.classes, name), Failure::usage,
            "'{}' is a class that '{}' does not have (a class must be learned before it is tested). Move it?",
            (list.folder / test / name).string(), (list.folder / "train").string());
  }
  add_class_folders(test, list.classes, storage, list, list.test);
}

// Positions of `files`, in an order drawn by `seed`.
std::vector<std::size_t> drawn_order(std::size_t files, std::uint64_t seed, SourceSplit split) {
  std::vector<std::size_t> order(files);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::uint64_t stream = stream_counter(Stream::pictures, split == SourceSplit::train ? 0 : 1);
  std::vector<std::uint64_t> draws(files);
  for (std::size_t at = 0; at < files; ++at) {
    const auto words = philox(seed, stream, at);
    draws[at] = std::uint64_t{words[0]} << 32 | words[1];
  }
  std::ranges::sort(order, {}, [&](std::size_t at) { return std::pair(draws[at], at); });
  return order;
}

void shuffle(std::vector<PictureFile>& files, std::uint64_t seed, SourceSplit split) {
  std::vector<PictureFile> shuffled;
  shuffled.reserve(files.size());
  for (const std::size_t at : drawn_order(files.size(), seed, split)) shuffled.push_back(std::move(files[at]));
  files = std::move(shuffled);
}

// The first tenth of each class, in the drawn order: of ten pictures one, of two to nine one, of one none.
void hold_out_tenth(PictureList& list) {
  std::vector<std::int64_t> counts(list.classes.size());
  for (const PictureFile& file : list.train) ++counts[static_cast<std::size_t>(file.label)];
  std::vector<PictureFile> kept;
  for (PictureFile& file : list.train) {
    std::int64_t& count = counts[static_cast<std::size_t>(file.label)];
    // Counts become the number that is still to be held out, as a negative number.
    if (count > 0) count = -(count == 1 ? 0 : std::max<std::int64_t>(count / 10, 1));
    (count < 0 ? list.test : kept).push_back(std::move(file));
    if (count < 0) ++count;
  }
  list.train = std::move(kept);
}

// Why nothing was found, as far as it is known.
std::string left_out_words(const std::vector<OddFile>& left_out) {
  if (left_out.empty()) return {};
  const std::string others = left_out.size() > 1 ? fmt::format(", and {} more", left_out.size() - 1) : "";
  return fmt::format("; left out: '{}', which {}{}", left_out.front().file, left_out.front().remark, others);
}

// Where there is neither train/ nor train.list: what was meant for tests is not to become a class, or to be passed
// over.
void require_no_test_alone(const fs::path& folder, const fs::path& test_list) {
  require(test_list.empty(), Failure::usage,
          "'{}' has no train.list beside it (a test set is made together with a training set). Write one.",
          (folder / test_list).string());
  const auto has_folders = [](const fs::path& path) { return is_folder(path) && !folders_in(path).empty(); };
  const fs::path test = first_of(folder, {"test", "val", "validation"}, has_folders);
  require(test.empty(), Failure::usage,
          "'{0}' has folders of its own and no train/ beside it (it would become one class). Name '{0}' itself as "
          "--source, and test its training split: evaluate --split train.",
          (folder / test).string());
}

}  // namespace

PictureList list_pictures(const fs::path& folder, const PictureStorage& storage, std::uint64_t seed) {
  require(is_folder(folder), Failure::usage,
          "'{}' is not a directory (--source). Name a folder with a folder of pictures for each class.",
          folder.string());
  PictureList list;
  list.folder = folder;
  const auto is_file = [](const fs::path& path) { return !is_absent(path); };
  const fs::path test_list = first_of(folder, {"test.list", "val.list"}, is_file);
  if (is_file(folder / "train.list")) {
    add_list_files("train.list", test_list, list);
    list.test_words = test_list.string();
  } else if (is_file(folder / imagenet_train_archive)) {
    add_imagenet_archives(list);
    list.test_words = imagenet_validation_archive;
  } else if (is_folder(folder / "train")) {
    const fs::path test = first_of(folder, {"test", "val", "validation"}, is_folder);
    list_split_folders(test, storage, list);
    list.test_words = test.string();
  } else {
    require_no_test_alone(folder, test_list);
    list.classes = folders_in(folder);
    add_class_folders("", list.classes, storage, list, list.train);
  }
  require(!list.train.empty(), Failure::usage,
          "'{}' holds no pictures (--source){}. It is to hold a folder of pictures for each class, or train/ and test/ "
          "with such folders, or train.list.",
          folder.string(), left_out_words(list.left_out));
  shuffle(list.train, seed, SourceSplit::train);
  if (list.test.empty()) {
    hold_out_tenth(list);
    list.test_words = "a tenth of each class, held out by --seed";
  }
  shuffle(list.test, seed, SourceSplit::test);
  require(!list.test.empty(), Failure::usage,
          "'{}' has one picture a class (nothing is left for a test). Add pictures, or a folder test/.",
          folder.string());
  return list;
}

std::string fingerprint(const PictureList& list) {
  const std::string text = to_text(list);
  return xxh3_128_hex(std::as_bytes(std::span(text)));
}

// MessagePack, because names of files need not be UTF-8.
std::string to_text(const PictureList& list) {
  const auto files = [](const std::vector<PictureFile>& from) {
    Json lines = Json::array();
    for (const PictureFile& file : from)
      lines.push_back({file.name, file.bytes, file.label, file.archive, file.offset});
    return lines;
  };
  Json left_out = Json::array();
  for (const OddFile& file : list.left_out) left_out.push_back({file.file, file.remark});
  const std::vector<std::uint8_t> bytes = Json::to_msgpack({{"folder", list.folder.string()},
                                                            {"classes", list.classes},
                                                            {"train", files(list.train)},
                                                            {"test", files(list.test)},
                                                            {"archives", list.archives},
                                                            {"left_out", left_out},
                                                            {"test_words", list.test_words}});
  return {bytes.begin(), bytes.end()};
}

PictureList picture_list_from(const std::string& text) {
  const Json json = Json::from_msgpack(text);
  PictureList list;
  list.folder = json.at("folder").get<std::string>();
  list.classes = json.at("classes").get<std::vector<std::string>>();
  list.archives = json.at("archives").get<std::vector<std::string>>();
  list.test_words = json.at("test_words").get<std::string>();
  for (const SourceSplit split : {SourceSplit::train, SourceSplit::test}) {
    for (const Json& file : json.at(split == SourceSplit::train ? "train" : "test")) {
      list.files(split).push_back({file.at(0).get<std::string>(), file.at(1).get<std::int64_t>(),
                                   file.at(2).get<std::int32_t>(), file.at(3).get<std::int32_t>(),
                                   file.at(4).get<std::int64_t>()});
    }
  }
  for (const Json& file : json.at("left_out")) {
    list.left_out.push_back({file.at(0).get<std::string>(), true, file.at(1).get<std::string>()});
  }
  return list;
}

}  // namespace lockstep
