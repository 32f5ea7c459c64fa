#include "dataset/pictures/list_file.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/number.hpp"
#include "dataset/pictures/listing/folder_names.hpp"
#include "dataset/sources/file_list.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t max_label = 99'999;  // limit on the number of classes in a manifest
constexpr std::string_view white = " \t\r";
constexpr const char* names_file = "classes.txt";

struct Line {
  std::int64_t number;
  std::string path;
  std::string label;
};

enum class Labels : std::uint8_t { written, folders };

struct List {
  fs::path file;
  std::vector<Line> lines;
  Labels labels;
};

// A picture may be listed twice, and then counts twice, but only with the same label.
void require_one_label_each(const List& list) {
  std::unordered_map<std::string_view, const Line*> seen;
  for (const Line& line : list.lines) {
    const Line& first = *seen.emplace(line.path, &line).first->second;
    require(line.label == first.label, Failure::bad_data,
            "line {} of '{}' gives the label '{}' to '{}', but line {} gives it '{}'. A picture has only one class. "
            "Correct the list.",
            line.number, list.file.string(), shown(line.label), shown(line.path), first.number, shown(first.label));
  }
}

Line labelled_line(const fs::path& file, const ListLine& line) {
  const std::string_view text = line.text;
  const std::size_t gap = text.find_last_of(white);
  const std::size_t path_end = gap == std::string_view::npos ? gap : text.substr(0, gap).find_last_not_of(white);
  require(path_end != std::string_view::npos, Failure::bad_data,
          "line {} of '{}' is not a path and a label: '{}'. Write 'folder/picture.jpg 3' or 'folder/picture.jpg cat'. "
          "Labels may be missing only if the first line is the path of a file.",
          line.number, file.string(), shown(text));
  return {line.number, std::string(text.substr(0, path_end + 1)), std::string(text.substr(gap + 1))};
}

Error unlabelled(const fs::path& file, const ListLine& line) {
  const std::string path = shown(line.text);
  return {
      Failure::bad_data,
      fmt::format("line {0} of '{1}' has no label: '{2}'. A label may be missing only if all pictures are in "
                  "class folders side by side, such as 'train/cat' and 'train/dog'. Write a label after each path: "
                  "'{2} 3' or '{2} cat'.{3}",
                  line.number, file.string(), path,
                  path.ends_with(".bin") ? " Lists of CIFAR's binary files are read by 'make_shards cifar10'." : "")};
}

// The label of each line is the name of its picture's folder.
std::vector<Line> lines_in_class_folders(const fs::path& file, const std::vector<ListLine>& from) {
  std::vector<Line> lines;
  fs::path around;
  for (const ListLine& line : from) {
    const fs::path folder = fs::path(line.text).lexically_normal().parent_path();
    if (lines.empty()) around = folder.parent_path();
    const std::string label = folder.filename().string();
    if (label.empty() || label == ".." || folder.parent_path() != around) throw unlabelled(file, line);
    lines.push_back({line.number, line.text, label});
  }
  return lines;
}

List read_pictures(const fs::path& file) {
  const std::vector<ListLine> lines = read_list(file);
  require(!lines.empty(), Failure::bad_data, "'{}' lists no pictures. Write a path and a label on each line.",
          file.string());
  const fs::path folder = file.parent_path();
  std::error_code reason;
  List list{file, {}, Labels::written};
  if (fs::is_regular_file(folder / listed_file(folder, lines.front().text), reason)) {
    list.labels = Labels::folders;
    list.lines = lines_in_class_folders(file, lines);
  } else {
    for (const ListLine& line : lines) list.lines.push_back(labelled_line(file, line));
  }
  require_one_label_each(list);
  return list;
}

// The training list. Pictures in one folder have no classes.
List read_training_pictures(const fs::path& file) {
  List list = read_pictures(file);
  const Line& first = list.lines.front();
  const bool is_one = std::ranges::all_of(list.lines, [&](const Line& line) { return line.label == first.label; });
  if (list.labels == Labels::folders && is_one) throw unlabelled(file, {first.number, first.path});
  return list;
}

std::optional<std::int64_t> number_of(const std::string& label) {
  return parse_number<std::int64_t>(label, {0, max_label});
}

// Names of the classes 0 to `largest`, or all names in classes.txt.
std::vector<std::string> numbered_classes(const fs::path& folder, std::int64_t largest) {
  std::vector<std::string> names;
  if (!is_absent(folder / names_file)) {
    for (const ListLine& line : read_list(folder / names_file)) {
      require(line.number == std::ssize(names) + 1, Failure::bad_data,
              "line {} of '{}' is blank. It must name class {}.", names.size() + 1, (folder / names_file).string(),
              names.size());
      names.push_back(line.text);
    }
    require(static_cast<std::int64_t>(names.size()) > largest, Failure::bad_data,
            "'{}' names {} classes, but the lists have label {}. Check that the labels start at 0.",
            (folder / names_file).string(), names.size(), largest);
    return names;
  }
  for (std::int64_t label = 0; label <= largest; ++label) names.push_back(std::to_string(label));
  return names;
}

// The class number of each label; also fills list.classes.
std::map<std::string, std::int32_t> meaning_of_labels(const List& train, PictureList& list) {
  std::map<std::string, std::int32_t> meaning;
  for (const Line& line : train.lines) meaning[line.label] = 0;
  const bool are_numbers = train.labels == Labels::written && std::ranges::all_of(meaning, [](const auto& label) {
                             return number_of(label.first).has_value();
                           });
  std::int64_t largest = 0;
  for (auto& [text, label] : meaning) {
    label = static_cast<std::int32_t>(number_of(text).value_or(0));
    if (!are_numbers) label = static_cast<std::int32_t>(list.classes.size());
    largest = std::max<std::int64_t>(largest, label);
    if (!are_numbers) list.classes.push_back(text);
  }
  if (are_numbers) list.classes = numbered_classes(list.folder, largest);
  return meaning;
}

Error unlearned(const List& list, const Line& line, const std::map<std::string, std::int32_t>& meaning,
                const fs::path& train) {
  std::vector<std::string> known;
  for (const auto& [text, label] : meaning) known.push_back(text);
  return {Failure::bad_data, fmt::format("line {} of '{}' has label '{}', which no line of '{}' has. A class can only "
                                         "be tested if it has training pictures. {}Correct one of the two lists.",
                                         line.number, list.file.string(), shown(line.label), train.string(),
                                         look_alike_hint(line.label, known))};
}

// `meaning` maps the labels of the list `train`.
void add_lines(const List& list, const std::map<std::string, std::int32_t>& meaning, const List& train,
               std::vector<PictureFile>& files) {
  require(list.labels == train.labels, Failure::bad_data,
          "only one of '{}' and '{}' has labels. Write labels in both, as in 'folder/picture.jpg cat', or in none.",
          train.file.string(), list.file.string());
  const fs::path folder = train.file.parent_path();
  for (const Line& line : list.lines) {
    std::error_code reason;
    const std::string name = listed_file(folder, line.path);
    const auto bytes = fs::file_size(folder / name, reason);
    require(!reason, Failure::bad_data,
            "line {} of '{}' names '{}', which cannot be accessed: {}. Correct the list. Relative paths start at the "
            "list's folder or the working directory.",
            line.number, list.file.string(), shown(line.path), reason.message());
    const auto label = meaning.find(line.label);
    if (label == meaning.end()) throw unlearned(list, line, meaning, train.file);
    files.push_back({name, static_cast<std::int64_t>(bytes), label->second, -1, 0});
  }
}

}  // namespace

void add_list_files(const ListFiles& files, PictureList& list) {
  const List learned = read_training_pictures(list.folder / files.train);
  const std::map<std::string, std::int32_t> meaning = meaning_of_labels(learned, list);
  if (learned.labels == Labels::folders) {
    list.notes.push_back(
        fmt::format("'{}' has no labels: the class of a picture is the name of its folder", learned.file.string()));
  }
  add_lines(learned, meaning, learned, list.train);
  const auto add = [&](const fs::path& file, std::vector<PictureFile>& to) {
    if (!file.empty()) add_lines(read_pictures(list.folder / file), meaning, learned, to);
  };
  add(files.validation, list.validation);
  add(files.test, list.test);
}

}  // namespace lockstep
