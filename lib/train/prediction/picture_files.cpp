#include "train/prediction/picture_files.hpp"

#include <algorithm>
#include <system_error>

#include "base/io/text_lines.hpp"
#include "base/system_failure.hpp"
#include "dataset/pictures/listing/folder_names.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t limit_bytes = std::size_t{1} << 30;

// Hidden files and system files such as thumbnails.
bool is_left_out(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with('.') || is_system_name(name);
}

void add_folder(const fs::path& folder, std::vector<std::string>& files) {
  const auto first = static_cast<std::ptrdiff_t>(files.size());
  std::error_code reason;
  fs::recursive_directory_iterator at(folder, reason);
  for (; !reason && at != fs::recursive_directory_iterator(); at.increment(reason)) {
    std::error_code unseen;
    if (is_left_out(at->path())) {
      at.disable_recursion_pending();
    } else if (at->is_regular_file(unseen)) {
      files.push_back(at->path().string());
    }
  }
  if (reason) {
    throw system_failure(fmt::format("cannot list the folder '{}'", folder.string()), reason.value(), Access::reading);
  }
  std::sort(files.begin() + first, files.end());
}

}  // namespace

std::vector<std::string> picture_files(const std::vector<fs::path>& named) {
  std::vector<std::string> files;
  for (const fs::path& path : named) {
    std::error_code reason;
    if (fs::is_directory(path, reason)) {
      add_folder(path, files);
    } else {
      files.push_back(path.string());
    }
  }
  return files;
}

std::vector<std::string> lines_of(const fs::path& file) {
  std::vector<std::string> lines;
  for_each_line(file, limit_bytes, [&](std::int64_t, std::string_view line) {
    if (!line.empty()) lines.emplace_back(line);
  });
  return lines;
}

}  // namespace lockstep
