#include "base/text/stated_path.hpp"

#include <algorithm>
#include <vector>

namespace lockstep {
namespace {

bool is_at_or_below(const std::string& name, const std::string& path) {
  return !path.empty() && (name == path || name.starts_with(path.ends_with('/') ? path : path + '/'));
}

}  // namespace

std::string with_option_of_path(std::string message, std::span<const StatedPath> paths) {
  const std::size_t begin = message.find('\'') + 1;
  const std::size_t end = message.find('\'', begin);
  const bool is_explained = end != std::string::npos && message.compare(end + 1, 2, " (") == 0;
  if (begin == 0 || end == std::string::npos || is_explained) return message;
  const std::string name = message.substr(begin, end - begin);
  std::vector<StatedPath> nearest;
  for (const StatedPath& one : paths) {
    if (!is_at_or_below(name, one.path.native())) continue;
    if (!nearest.empty() && nearest.front().path.native().size() > one.path.native().size()) continue;
    if (!nearest.empty() && nearest.front().path != one.path) nearest.clear();
    nearest.push_back(one);
  }
  const auto is_named = [&](const StatedPath& one) { return message.find(one.option) != std::string::npos; };
  if (nearest.empty() || std::ranges::any_of(nearest, is_named)) return message;
  const bool is_path_itself = name == nearest.front().path;
  const auto fits = std::ranges::find(nearest, is_path_itself, &StatedPath::is_file);
  return message.insert(end + 1, " (" + (fits == nearest.end() ? nearest.front() : *fits).option + ")");
}

}  // namespace lockstep
