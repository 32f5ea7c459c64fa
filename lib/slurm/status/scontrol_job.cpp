#include "slurm/status/scontrol_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <memory>
#include <sstream>

#include "base/text/number.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();

std::string_view without_indent(std::string_view line) {
  return line.substr(std::min(line.find_first_not_of(' '), line.size()));
}

// The value of `name` in "A=1 B=2", up to a blank; empty if the name is missing.
std::string_view word_in(std::string_view message, std::string_view name) {
  while (!message.empty()) {
    const std::string_view word = message.substr(0, message.find(' '));
    if (word.starts_with(name)) return word.substr(name.size());
    message.remove_prefix(std::min(word.size() + 1, message.size()));
  }
  return {};
}

std::int64_t count_in(std::string_view message, std::string_view name) {
  return parse_number<std::int64_t>(word_in(message, name), {0, most}).value_or(0);
}

// "JobId=18 ArrayJobId=16 ArrayTaskId=2 JobName=two words": the name extends to the end of the line.
ScontrolJob first_line(std::string_view line) {
  constexpr std::string_view before_name = " JobName=";
  const std::size_t at = line.find(before_name);
  const std::string_view message = line.substr(0, at);
  ScontrolJob job;
  job.id = count_in(message, "JobId=");
  job.array = count_in(message, "ArrayJobId=");
  job.task = word_in(message, "ArrayTaskId=");
  job.whole = count_in(message, "HetJobId=");
  if (at != std::string_view::npos) job.name = line.substr(at + before_name.size());
  return job;
}

void read_line(std::string_view line, ScontrolJob& job) {
  const auto take_path = [&](std::string_view name, std::filesystem::path& target) {
    if (line.starts_with(name) && target.empty()) target = line.substr(name.size());
  };
  if (line.starts_with("JobState=") && job.state.empty()) {
    job.state = word_in(line, "JobState=");
    job.reason = word_in(line, "Reason=");
  }
  if (line.starts_with("Requeue=") && !job.restarts) {
    job.restarts = parse_number<std::int64_t>(word_in(line, "Restarts="), {0, most});
  }
  if (const std::string_view since = word_in(line, "PreemptTime="); line.starts_with("Preempt") && since != "None") {
    job.preempted = since;
  }
  take_path("StdOut=", job.log);
  take_path("WorkDir=", job.folder);
}

}  // namespace

std::optional<JobNumber> parse_job_number(std::string_view text) {
  const std::size_t mark = text.find_first_of("_+");
  const std::optional<std::int64_t> job = parse_number<std::int64_t>(text.substr(0, mark), {1, most});
  if (!job) return std::nullopt;
  if (mark == std::string_view::npos) return JobNumber{*job, {}};
  const std::optional<std::int64_t> part = parse_number<std::int64_t>(text.substr(mark + 1), {0, most});
  if (!part) return std::nullopt;
  return text[mark] == '_' ? JobNumber{*job, part} : JobNumber{*job, {}};
}

std::string format_job_number(const JobNumber& number) {
  return number.task ? fmt::format("{}_{}", number.job, *number.task) : fmt::format("{}", number.job);
}

ScontrolAnswer parse_scontrol(const std::string& text) {
  ScontrolAnswer answer;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("JobId=")) {
      answer.jobs.push_back(first_line(line));
    } else if (!answer.jobs.empty()) {
      read_line(without_indent(line), answer.jobs.back());
    }
  }
  std::erase_if(answer.jobs, [](const ScontrolJob& job) { return job.id == 0 || job.state.empty(); });
  if (!answer.jobs.empty()) {
    answer.kind = ScontrolAnswer::Kind::jobs;
  } else if (text.find("Invalid job id") != std::string::npos) {
    answer.kind = ScontrolAnswer::Kind::unknown;
  }
  return answer;
}

ScontrolAnswer ask_scontrol(const JobNumber& number) {
  const std::string command = fmt::format("timeout 10 scontrol show job {} 2>&1", format_job_number(number));
  const auto close = [](FILE* pipe) { ::pclose(pipe); };
  const std::unique_ptr<FILE, decltype(close)> pipe(::popen(command.c_str(), "re"), close);  // NOLINT(cert-env33-c)
  constexpr std::size_t longest = std::size_t{1} << 24;  // an array has thousands of tasks
  std::string text;
  std::array<char, 1 << 14> room{};
  while (pipe && text.size() < longest) {
    const std::size_t got = std::fread(room.data(), 1, room.size(), pipe.get());
    if (got == 0) break;
    text.append(room.data(), got);
  }
  return parse_scontrol(text);
}

bool is_being_ended(const ScontrolJob& job) { return job.state != "RUNNING" || !job.preempted.empty(); }

}  // namespace lockstep
