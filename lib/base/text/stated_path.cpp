#include "base/text/stated_path.hpp"

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
  const StatedPath* nearest = nullptr;
  for (const StatedPath& one : paths) {
    const bool is_longer = nearest == nullptr || nearest->path.native().size() < one.path.native().size();
    if (is_longer && is_at_or_below(name, one.path.native())) nearest = &one;
  }
  if (nearest != nullptr && message.find(nearest->option) == std::string::npos) {
    message.insert(end + 1, " (" + nearest->option + ")");
  }
  return message;
}

}  // namespace lockstep
