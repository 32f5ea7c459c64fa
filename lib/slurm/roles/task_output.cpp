#include "slurm/roles/task_output.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text/number.hpp"

namespace lockstep {
namespace {

bool is_of_srun(std::string_view text) { return text.starts_with("srun: ") || text.starts_with("slurmstepd"); }

}  // namespace

std::vector<OutputLine> TaskOutput::take(const std::string& line) {
  const std::optional<Mark> mark = mark_of(line);
  const bool may_be_message = is_of_srun(std::string_view(line).substr(mark ? mark->length : 0));
  if (held_.empty()) {
    if (!mark || !may_be_message) return {keep(line)};
    held_.push_back(line);
    return {};
  }
  if (mark) {
    std::vector<OutputLine> lines = take_end();
    std::vector<OutputLine> more = take(line);
    std::ranges::move(more, std::back_inserter(lines));
    return lines;
  }
  if (may_be_message) {
    held_.push_back(line);
    return {};
  }
  const Mark interrupted = *mark_of(held_.front());
  held_.front().erase(0, interrupted.length);
  std::vector<OutputLine> lines;
  for (std::string& message : std::exchange(held_, {})) lines.push_back({std::move(message), false});
  keep_for(interrupted.task, line);
  lines.push_back({line, true});
  return lines;
}

std::vector<OutputLine> TaskOutput::take_end() {
  std::vector<OutputLine> lines;
  for (const std::string& line : std::exchange(held_, {})) lines.push_back(keep(line));
  return lines;
}

std::vector<std::string> TaskOutput::last_of(std::size_t task) const {
  return {kept_.at(task).begin(), kept_.at(task).end()};
}

// " 7: text" or "07: text" of task 7. A step of one task has no marks.
std::optional<TaskOutput::Mark> TaskOutput::mark_of(std::string_view line) const {
  constexpr std::string_view after_number = ": ";
  if (kept_.size() == 1) return std::nullopt;
  const std::size_t start = line.find_first_not_of(' ');
  const std::size_t end = line.find(after_number);
  if (end == std::string_view::npos || start >= end) return std::nullopt;
  const auto most = static_cast<std::int64_t>(kept_.size()) - 1;
  const auto number = parse_number<std::int64_t>(line.substr(start, end - start), {0, most});
  return number ? std::optional(Mark{static_cast<std::size_t>(*number), end + after_number.size()}) : std::nullopt;
}

OutputLine TaskOutput::keep(std::string_view line) {
  const std::optional<Mark> mark = mark_of(line);
  const std::string_view text = line.substr(mark ? mark->length : 0);
  if (mark || kept_.size() == 1) keep_for(mark ? mark->task : 0, text);
  return {std::string(text), mark.has_value()};
}

void TaskOutput::keep_for(std::size_t task, std::string_view text) {
  constexpr std::size_t longest_line = 500;
  std::deque<std::string>& kept = kept_.at(task);
  kept.emplace_back(text.substr(0, longest_line));
  if (kept.size() > lines_) kept.pop_front();
}

}  // namespace lockstep
