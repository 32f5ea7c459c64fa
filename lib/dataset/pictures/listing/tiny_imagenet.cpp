#include "dataset/pictures/listing/tiny_imagenet.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>

#include "base/error.hpp"
#include "base/io/text_lines.hpp"
#include "base/text/printable.hpp"
#include "dataset/pictures/class_folders.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t text_limit_bytes = std::size_t{1} << 26;

struct Annotation {
  std::int32_t label;
  bool is_found = false;
};

// Keyed by the picture's file name.
std::map<std::string, Annotation> read_annotations(const fs::path& file, const std::vector<std::string>& classes) {
  std::map<std::string, Annotation> annotations;
  for_each_line(file, text_limit_bytes, [&](std::int64_t number, std::string_view line) {
    if (line.empty()) return;
    std::istringstream words{std::string(line)};
    std::string picture;
    std::string name;
    words >> picture >> name;
    const auto found = std::ranges::lower_bound(classes, name);
    require(!name.empty() && found != classes.end() && *found == name, Failure::bad_data,
            "line {} of '{}' is not a picture and a class that 'train' has: '{}'. Download the file again.", number,
            file.string(), printable(line.substr(0, 100)));
    annotations.emplace(picture, Annotation{static_cast<std::int32_t>(found - classes.begin())});
  });
  return annotations;
}

}  // namespace

void add_annotated_pictures(const fs::path& part, const PictureStorage& storage, PictureList& list,
                            std::vector<PictureFile>& files) {
  const fs::path table = list.folder / part / annotations_file;
  std::map<std::string, Annotation> annotations = read_annotations(table, list.classes);
  std::vector<PictureFile> candidates;
  add_class_folders(part, {""}, storage, list, candidates);
  for (PictureFile& file : candidates) {
    const std::string name = fs::path(file.name).filename().string();
    if (name == annotations_file) continue;
    const auto found = annotations.find(name);
    if (found == annotations.end() || found->second.is_found) {
      list.remarks.push_back({file.name, true, fmt::format("is not in {}", annotations_file)});
      continue;
    }
    found->second.is_found = true;
    file.label = found->second.label;
    files.push_back(std::move(file));
  }
  const auto missing =
      std::ranges::find_if(annotations, [](const auto& annotation) { return !annotation.second.is_found; });
  if (missing == annotations.end()) return;
  throw Error(Failure::bad_data, fmt::format("'{}' names '{}', which is not in '{}'. Unpack the archive again.",
                                             table.string(), printable(missing->first), (list.folder / part).string()));
}

}  // namespace lockstep
