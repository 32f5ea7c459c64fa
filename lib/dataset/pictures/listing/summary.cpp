#include "dataset/pictures/listing/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/text/counted.hpp"
#include "base/text/printable.hpp"
#include "dataset/pictures/listing/folder_names.hpp"

namespace lockstep {
namespace {

constexpr std::size_t max_classes_shown = 20;
constexpr std::size_t classes_at_ends = 3;
constexpr std::size_t max_names = 3;

struct NamedSplit {
  SourceSplit split;
  const char* name;
  const std::string& from;
};

std::vector<NamedSplit> splits_of(const PictureList& list) {
  std::vector<NamedSplit> splits{{SourceSplit::train, "training", list.train_origin}};
  if (!list.validation.empty()) splits.push_back({SourceSplit::validation, "validation", list.validation_origin});
  splits.push_back({SourceSplit::test, "test", list.test_origin});
  return splits;
}

// "'a', 'b', 'c' and 2 more"
std::string names_of(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), max_names);
  std::string text;
  for (std::size_t at = 0; at < shown; ++at) text += fmt::format("{}'{}'", at == 0 ? "" : ", ", printable(names[at]));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

// "ant 6 + 3": one count per split.
class ClassCounts {
 public:
  explicit ClassCounts(const PictureList& list) : list_(list) {
    for (const NamedSplit& split : splits_of(list)) {
      counts_.push_back(counts_by_class(list, split.split, CountedFiles::pictures));
      names_.emplace_back(split.name);
    }
  }

  std::vector<std::string> lines() const {
    const std::size_t classes = list_.classes.size();
    const std::string of_splits = fmt::format("{}", fmt::join(names_, " + "));
    if (classes <= max_classes_shown) {
      return {fmt::format("{} ({}): {}", counted(classes, "class", "classes"), of_splits, range(0, classes))};
    }
    return {fmt::format("{} classes ({}): {}, ..., {}", classes, of_splits, range(0, classes_at_ends),
                        range(classes - classes_at_ends, classes)),
            spread()};
  }

 private:
  std::string range(std::size_t begin, std::size_t end) const {
    std::string text;
    for (std::size_t label = begin; label < end; ++label) {
      std::vector<std::int64_t> numbers;
      for (const auto& counts : counts_) numbers.push_back(counts[label]);
      text += fmt::format("{}{} {}", label == begin ? "" : ", ", printable(list_.classes[label]),
                          fmt::join(numbers, " + "));
    }
    return text;
  }

  std::string spread() const {
    std::vector<std::size_t> order(list_.classes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::vector<std::int64_t>& counts = counts_.front();
    std::ranges::stable_sort(order, {}, [&](std::size_t label) { return counts[label]; });
    const auto named = [&](std::size_t at) {
      return fmt::format("{} ('{}')", counts[order[at]], printable(list_.classes[order[at]]));
    };
    return fmt::format("training pictures per class: minimum {}, median {}, maximum {}", named(0),
                       counts[order[order.size() / 2]], named(order.size() - 1));
  }

  const PictureList& list_;
  std::vector<std::vector<std::int64_t>> counts_;
  std::vector<std::string> names_;
};

// Files in class folders whose names are not those of pictures. Reading them decides.
std::vector<std::string> other_files_of(const PictureList& list) {
  std::vector<std::string> names;
  for (const NamedSplit& split : splits_of(list)) {
    for (const PictureFile& file : list.files(split.split)) {
      if (!may_be_picture(file.name)) names.push_back(file.name);
    }
  }
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> classes_without(const PictureList& list, SourceSplit split) {
  const std::vector<std::int64_t> counts = counts_by_class(list, split, CountedFiles::pictures);
  std::vector<std::string> names;
  for (std::size_t label = 0; label < counts.size(); ++label) {
    if (counts[label] == 0) names.push_back(list.classes[label]);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

std::vector<std::int64_t> counts_by_class(const PictureList& list, SourceSplit split, CountedFiles kind) {
  std::vector<std::int64_t> counts(list.classes.size());
  for (const PictureFile& file : list.files(split)) {
    if (kind == CountedFiles::all || may_be_picture(file.name)) ++counts[static_cast<std::size_t>(file.label)];
  }
  return counts;
}

std::vector<std::string> summary_of(const PictureList& list) {
  std::vector<std::string> lines = list.notes;
  for (const NamedSplit& split : splits_of(list)) {
    const std::vector<std::int64_t> counts = counts_by_class(list, split.split, CountedFiles::pictures);
    lines.push_back(fmt::format("{}: {} of {} ({})", split.name,
                                counted(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), "picture"),
                                counted(std::ssize(counts) - std::ranges::count(counts, 0), "class", "classes"),
                                printable(split.from)));
  }
  for (std::string& line : ClassCounts(list).lines()) lines.push_back(std::move(line));
  for (const std::string& line : left_out_lines(list)) lines.push_back("left out: " + line);
  const std::vector<std::string> others = other_files_of(list);
  if (!others.empty()) {
    lines.push_back(fmt::format("{} no picture extension: {}. Their content decides whether they are pictures.",
                                counted(others.size(), "file in class folders has", "files in class folders have"),
                                names_of(others)));
  }
  return lines;
}

std::vector<std::string> left_out_lines(const PictureList& list) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const auto* const files : {&list.left_out, &list.remarks}) {
    for (const OddFile& file : *files) {
      if (file.is_skipped) by_reason[file.remark].push_back(file.file);
    }
  }
  std::vector<std::string> lines;
  for (auto& [reason, names] : by_reason) {
    std::ranges::sort(names);
    lines.push_back(names.size() == 1
                        ? fmt::format("'{}' {}", printable(names.front()), reason)
                        : fmt::format("{} files or folders ({}): each {}", names.size(), names_of(names), reason));
  }
  return lines;
}

std::vector<std::string> doubts_about(const PictureList& list) {
  std::vector<std::string> doubts;
  const std::vector<std::string> unlearned = classes_without(list, SourceSplit::train);
  if (!unlearned.empty()) {
    doubts.push_back(
        fmt::format("{} of {} classes have no training pictures: {}. A network cannot learn them. Add pictures, or "
                    "leave out the folders with --skip.",
                    unlearned.size(), list.classes.size(), names_of(unlearned)));
  }
  std::vector<std::string> untested = classes_without(list, SourceSplit::test);
  std::erase_if(untested, [&](const std::string& name) { return std::ranges::binary_search(unlearned, name); });
  if (!untested.empty()) {
    doubts.push_back(
        fmt::format("{} of {} classes have no test pictures: {}. Their accuracy cannot be measured. Add test pictures.",
                    untested.size(), list.classes.size(), names_of(untested)));
  }
  std::map<std::string, std::vector<std::string>> by_look;
  for (const std::string& name : list.classes) by_look[look_of(name)].push_back(name);
  for (const auto& [look, names] : by_look) {
    for (std::size_t at = 1; at < names.size(); ++at) {
      if (!look_alike(names[at - 1], names[at])) continue;
      doubts.push_back(fmt::format("classes {} and {} look alike. Check that they are two different classes.",
                                   quoted_with_bytes(names[at - 1]), quoted_with_bytes(names[at])));
    }
  }
  return doubts;
}

}  // namespace lockstep
