#include "dataset/pictures/list_file.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/io/text_lines.hpp"
#include "base/text/number.hpp"
#include "base/text/printable.hpp"
#include "dataset/pictures/listing/folder_names.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t list_limit_bytes = std::size_t{1} << 30;
constexpr std::int64_t max_label = 99'999;  // limit on the number of classes in a manifest
constexpr std::string_view white = " \t\r";
constexpr const char* names_file = "classes.txt";

struct Line {
  std::int64_t number;
  std::string path;
  std::string label;
};

struct List {
  fs::path file;
  std::vector<Line> lines;
};

// Calls `take` for each line that is not empty, without trailing white space.
void for_each_entry(const fs::path& file, const std::function<void(std::int64_t, std::string_view)>& take) {
  for_each_line(file, list_limit_bytes, [&](std::int64_t number, std::string_view line) {
    line = line.substr(0, line.find_last_not_of(white) + 1);  // npos + 1 is 0
    if (!line.empty()) take(number, line);
  });
}

// A picture may be listed twice, and then counts twice, but only with the same label.
void require_one_label_each(const List& list) {
  std::unordered_map<std::string_view, const Line*> seen;
  for (const Line& line : list.lines) {
    const Line& first = *seen.emplace(line.path, &line).first->second;
    require(line.label == first.label, Failure::bad_data,
            "line {} of '{}' gives the label '{}' to '{}', but line {} gives it '{}'. A picture has only one class. "
            "Correct the list.",
            line.number, list.file.string(), printable(line.label), printable(line.path), first.number,
            printable(first.label));
  }
}

List read_list(const fs::path& file) {
  std::vector<Line> lines;
  for_each_entry(file, [&](std::int64_t number, std::string_view line) {
    const std::size_t gap = line.find_last_of(white);
    const std::size_t path_end = gap == std::string_view::npos ? gap : line.substr(0, gap).find_last_not_of(white);
    require(
        path_end != std::string_view::npos, Failure::bad_data,
        "line {} of '{}' is not a path and a label: '{}'. Write 'folder/picture.jpg 3' or 'folder/picture.jpg cat'.",
        number, file.string(), printable(line.substr(0, 200)));
    lines.push_back({number, std::string(line.substr(0, path_end + 1)), std::string(line.substr(gap + 1))});
  });
  require(!lines.empty(), Failure::bad_data, "'{}' lists no pictures. Write a path and a label on each line.",
          file.string());
  List list{file, std::move(lines)};
  require_one_label_each(list);
  return list;
}

std::optional<std::int64_t> number_of(const std::string& label) {
  return parse_number<std::int64_t>(label, {0, max_label});
}

// Names of the classes 0 to `largest`, or all names in classes.txt.
std::vector<std::string> numbered_classes(const fs::path& folder, std::int64_t largest) {
  std::vector<std::string> names;
  if (!is_absent(folder / names_file)) {
    for_each_entry(folder / names_file, [&](std::int64_t, std::string_view line) { names.emplace_back(line); });
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
  const bool are_numbers =
      std::ranges::all_of(meaning, [](const auto& label) { return number_of(label.first).has_value(); });
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
                                         line.number, list.file.string(), printable(line.label), train.string(),
                                         look_alike_hint(line.label, known))};
}

// `meaning` maps the labels of the list `train`.
void add_lines(const List& list, const std::map<std::string, std::int32_t>& meaning, const fs::path& train,
               std::vector<PictureFile>& files) {
  const fs::path folder = train.parent_path();
  for (const Line& line : list.lines) {
    std::error_code reason;
    const auto bytes = fs::file_size(folder / line.path, reason);
    require(!reason, Failure::bad_data, "line {} of '{}' names '{}', which cannot be accessed: {}. Correct the list.",
            line.number, list.file.string(), printable(line.path), reason.message());
    const auto label = meaning.find(line.label);
    if (label == meaning.end()) throw unlearned(list, line, meaning, train);
    files.push_back({line.path, static_cast<std::int64_t>(bytes), label->second, -1, 0});
  }
}

}  // namespace

void add_list_files(const ListFiles& files, PictureList& list) {
  const List learned = read_list(list.folder / files.train);
  const std::map<std::string, std::int32_t> meaning = meaning_of_labels(learned, list);
  add_lines(learned, meaning, learned.file, list.train);
  const auto add = [&](const fs::path& file, std::vector<PictureFile>& to) {
    if (!file.empty()) add_lines(read_list(list.folder / file), meaning, learned.file, to);
  };
  add(files.validation, list.validation);
  add(files.test, list.test);
}

}  // namespace lockstep
