#include "slurm/roles/task_output.hpp"

#include <algorithm>

#include "base/text/number.hpp"

namespace lockstep {

std::string_view TaskOutput::take(std::string_view line) {
  std::size_t task = 0;
  if (kept_.size() > 1) {
    constexpr std::string_view after_number = ": ";
    const std::size_t start = line.find_first_not_of(' ');
    const std::size_t end = line.find(after_number);
    if (end == std::string_view::npos || start >= end) return line;
    const auto most = static_cast<std::int64_t>(kept_.size()) - 1;
    const auto number = parse_number<std::int64_t>(line.substr(start, end - start), {0, most});
    if (!number) return line;  // of srun itself
    task = static_cast<std::size_t>(*number);
    line.remove_prefix(end + after_number.size());
  }
  constexpr std::size_t longest_line = 500;
  std::deque<std::string>& kept = kept_.at(task);
  kept.emplace_back(line.substr(0, longest_line));
  if (kept.size() > lines_) kept.pop_front();
  return line;
}

std::vector<std::string> TaskOutput::last_of(std::size_t task) const {
  return {kept_.at(task).begin(), kept_.at(task).end()};
}

}  // namespace lockstep
