#include "slurm/retry/evidence.hpp"

#include <algorithm>
#include <system_error>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/number.hpp"
#include "run/run_file.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t longest_tail = 1 << 16;
constexpr std::size_t longest_group_file = 1 << 16;

std::string text_or_nothing(const std::filesystem::path& file) {
  try {
    return read_live_file(file, longest_group_file);
  } catch (const std::exception&) {
    return "";
  }
}

// Finds "oom_kill 3" on a line of its own.
std::int64_t count_in(const std::string& text) {
  constexpr std::string_view name = "oom_kill ";
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!line.starts_with(name)) continue;
    return parse_number<std::int64_t>(line.substr(name.size()), {.least = 0, .most = 1 << 30}).value_or(0);
  }
  return 0;
}

// Control groups version 1 count only their own processes, so this adds up all groups below.
std::int64_t count_below(const std::filesystem::path& group) {
  std::int64_t kills = count_in(text_or_nothing(group / "memory.oom_control"));
  std::error_code ignored;
  for (auto at = std::filesystem::recursive_directory_iterator(group, ignored);
       at != std::filesystem::recursive_directory_iterator(); at.increment(ignored)) {
    if (at->is_directory(ignored)) kills += count_in(text_or_nothing(at->path() / "memory.oom_control"));
  }
  return kills;
}

// The path up to "job_17" in "/slurm/uid_0/job_17/step_batch"; empty if it has no such part.
std::string_view group_of_job(std::string_view path, std::int64_t job) {
  const std::string name = "/job_" + number_text(job);
  const std::size_t at = path.find(name);
  if (at == std::string_view::npos || path.find("..") != std::string_view::npos) return "";
  const std::size_t end = at + name.size();
  return end == path.size() || path[end] == '/' ? path.substr(1, end - 1) : "";
}

}  // namespace

std::string read_log_tail(const std::filesystem::path& log, std::int64_t from) try {
  const RegularFile file(log);
  const auto bytes = static_cast<std::int64_t>(file.bytes());
  const std::int64_t length = std::clamp(bytes - from, std::int64_t{0}, longest_tail);
  return read_at(file, static_cast<std::size_t>(bytes - length), static_cast<std::size_t>(length));
} catch (const std::exception&) {
  return "";
}

std::int64_t bytes_of(const std::filesystem::path& file) {
  std::error_code failed;
  const std::uintmax_t bytes = std::filesystem::file_size(file, failed);
  return failed ? 0 : static_cast<std::int64_t>(bytes);
}

std::int64_t oom_kills(std::string_view groups, const std::filesystem::path& root, std::int64_t job) {
  std::int64_t kills = 0;
  while (!groups.empty()) {
    const std::size_t end = std::min(groups.find('\n'), groups.size());
    const std::string_view line = groups.substr(0, end);
    groups.remove_prefix(std::min(end + 1, groups.size()));
    const std::size_t slash = line.find('/');
    const std::string_view group = slash == std::string_view::npos ? "" : group_of_job(line.substr(slash), job);
    if (group.empty()) continue;
    if (line.starts_with("0::")) kills += count_in(text_or_nothing(root / group / "memory.events"));
    if (line.find(":memory:") != std::string_view::npos) kills += count_below(root / "memory" / group);
  }
  return kills;
}

}  // namespace lockstep
