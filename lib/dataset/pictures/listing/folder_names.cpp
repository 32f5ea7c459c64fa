#include "dataset/pictures/listing/folder_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <vector>

#include "base/text/printable.hpp"
#include "base/text/utf8.hpp"

namespace lockstep {
namespace {

constexpr std::array train_names = {"train", "training", "trainset", "trainingset"};
constexpr std::array validation_names = {"val", "valid", "validation", "valset", "validset", "validationset", "dev"};
constexpr std::array test_names = {"test", "tests", "testing", "testset", "testingset", "eval", "evaluation"};
constexpr std::array container_names = {"set",  "data",    "dataset",  "image", "images", "img",
                                        "imgs", "picture", "pictures", "pics",  "photo",  "photos",
                                        "jpg",  "jpeg",    "jpegs",    "png",   "split",  "jpegimages"};
constexpr std::array unknown_names = {"unknown", "unlabeled", "unlabelled", "unclassified", "all"};
constexpr std::array system_names = {"@eadir",
                                     "#recycle",
                                     "@recycle",
                                     "$recycle.bin",
                                     "#snapshot",
                                     "@recently-snapshot",
                                     "@__thumb",
                                     "~snapshot",
                                     "__macosx",
                                     "lost+found",
                                     "system volume information",
                                     "temporary items",
                                     "network trash folder",
                                     "thumbs.db",
                                     "ehthumbs.db",
                                     "desktop.ini",
                                     "icon\r"};
constexpr std::array texts_without_ending = {"authors", "changelog", "citation", "copying",    "licence",
                                             "license", "makefile",  "md5sums",  "notice",     "readme",
                                             "version", "sha1sums",  "manifest", "sha256sums", "checksums"};
constexpr std::array other_endings = {".txt", ".csv", ".tsv",  ".json", ".jsonl",      ".xml", ".yaml",
                                      ".yml", ".md",  ".html", ".htm",  ".pdf",        ".ini", ".db",
                                      ".mat", ".npy", ".npz",  ".h5",   ".hdf5",       ".pkl", ".py",
                                      ".zip", ".tar", ".gz",   ".list", ".identifier", ".log"};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& letter : result) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return result;
}

template <typename Words>
bool is_one_of(const Words& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// "Test_images-2017" gives "test", "images", "2017". Digits at the end of a word are removed: "train2017" gives
// "train".
std::vector<std::string> words_in_name(std::string_view name) {
  constexpr std::string_view gaps = " _-.()";
  constexpr std::string_view digits = "0123456789";
  const std::string text = lower(name);
  std::vector<std::string> words;
  for (std::size_t begin = text.find_first_not_of(gaps); begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of(gaps, begin), text.size());
    std::string word = text.substr(begin, end - begin);
    const std::size_t letters = word.find_last_not_of(digits) + 1;
    if (letters > 0) word.resize(letters);
    words.push_back(std::move(word));
    begin = std::min(text.find_first_not_of(gaps, end), text.size());
  }
  return words;
}

std::optional<Split> split_of_word(std::string_view word) {
  if (is_one_of(train_names, word)) return Split::train;
  if (is_one_of(validation_names, word)) return Split::validation;
  if (is_one_of(test_names, word)) return Split::test;
  return std::nullopt;
}

// Combining diacritical marks, voiced sound marks of kana, and Hangul vowels and final consonants.
bool combines(char32_t code) {
  return (code >= 0x300 && code <= 0x36F) || code == 0x3099 || code == 0x309A || (code >= 0x1160 && code <= 0x11FF);
}

std::int64_t combining_marks_in(std::string_view text) {
  std::int64_t marks = 0;
  while (!text.empty()) {
    const auto [bytes, code] = first_character(text);
    if (code && combines(*code)) ++marks;
    text.remove_prefix(bytes);
  }
  return marks;
}

// Non-ASCII bytes as escape sequences.
std::string bytes_of_name(std::string_view name) {
  std::string bytes;
  for (const char letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte >= 0x20 && byte < 0x7F) {
      bytes += letter;
    } else {
      fmt::format_to(std::back_inserter(bytes), "\\x{:02x}", byte);
    }
  }
  return bytes;
}

}  // namespace

std::optional<SplitName> split_name_of(std::string_view folder) {
  std::optional<Split> split;
  std::string stem;
  for (const std::string& word : words_in_name(folder)) {
    const std::optional<Split> of_word = split_of_word(word);
    if (of_word && split) return std::nullopt;
    if (of_word) split = of_word;
    if (!of_word && !is_one_of(container_names, word)) stem += (stem.empty() ? "" : "_") + word;
  }
  if (!split) return std::nullopt;
  return SplitName{*split, stem};
}

bool is_container_name(std::string_view folder) {
  const std::vector<std::string> words = words_in_name(folder);
  return std::ranges::all_of(words, [](const std::string& word) {
    return is_one_of(container_names, word) || is_one_of(unknown_names, word) || split_of_word(word).has_value();
  });
}

bool is_system_name(std::string_view name) {
  constexpr std::size_t longest = 32;
  return name.size() <= longest && is_one_of(system_names, lower(name));
}

bool may_be_picture(std::string_view file) {
  const std::string_view name = file.substr(file.find_last_of('/') + 1);  // npos + 1 is 0
  const std::size_t dot = name.find_last_of('.');
  const bool is_other = dot == std::string_view::npos ? is_one_of(texts_without_ending, lower(name))
                                                      : is_one_of(other_endings, lower(name.substr(dot)));
  return !is_other && !is_system_name(name);
}

std::string look_of(std::string_view name) {
  constexpr char placeholder = '\x01';
  const std::string text = lower(name);
  std::string look;
  for (std::string_view rest = text; !rest.empty();) {
    const auto [bytes, code] = first_character(rest);
    if (!code || *code < 0x80) {
      look += rest.substr(0, bytes);
    } else if (!combines(*code)) {
      look += placeholder;
    } else if (!look.empty()) {
      look.back() = placeholder;
    }
    rest.remove_prefix(bytes);
  }
  return look;
}

bool look_alike(std::string_view a, std::string_view b) {
  return a != b && look_of(a) == look_of(b) && (lower(a) == lower(b) || combining_marks_in(a) != combining_marks_in(b));
}

std::string quoted_with_bytes(std::string_view name) {
  const std::string bytes = bytes_of_name(name);
  return bytes == name ? fmt::format("'{}'", name) : fmt::format("'{}' (bytes '{}')", printable(name), bytes);
}

std::string look_alike_hint(std::string_view name, std::span<const std::string> known) {
  const auto alike = std::ranges::find_if(known, [&](const std::string& other) { return look_alike(other, name); });
  if (alike == known.end()) return {};
  return fmt::format("It looks like the class '{}', but its bytes are '{}' and not '{}'. Rename one of the two. ",
                     printable(*alike), bytes_of_name(name), bytes_of_name(*alike));
}

}  // namespace lockstep
