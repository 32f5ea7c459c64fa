#include "slurm/status/job_record.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>
#include <system_error>

#include "base/error.hpp"
#include "base/text/printable.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// Between `name` and what ends it: a space, or only the line's end, for paths hold spaces.
std::string field_in(const std::string& line, std::string_view name, bool (*ends)(char)) {
  const std::size_t found = line.find(name);
  if (found == std::string::npos || (found > 0 && line[found - 1] != ' ')) return "";
  const auto first = line.begin() + static_cast<std::ptrdiff_t>(found + name.size());
  return {first, std::find_if(first, line.end(), ends)};
}

// "train_cifar-17" of "train_cifar-17.attempts.jsonl", with its folder; empty if there is none.
fs::path stem_in(const fs::path& folder, std::int64_t job) {
  const std::string ending = fmt::format("-{}.attempts.jsonl", job);
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.empty() ? "." : folder, error)) {
    const std::string path = entry.path().string();
    if (path.ends_with(ending)) return path.substr(0, path.size() - std::string_view(".attempts.jsonl").size());
  }
  return {};
}

std::vector<Attempt> attempts_in(const fs::path& file, std::int64_t job) {
  try {
    return AttemptsFile(file, job).attempts();
  } catch (const Error&) {
    return {};  // it is being written, or is none
  }
}

std::string last_end(const std::vector<Attempt>& attempts) {
  const auto ended = std::find_if(attempts.rbegin(), attempts.rend(),
                                  [](const Attempt& attempt) { return attempt.cause != Cause::running; });
  if (ended == attempts.rend()) return "";
  return fmt::format("attempt {}, {}: {}", ended->attempt, row_of(ended->cause).name, printable(ended->sentence));
}

}  // namespace

ScontrolJob parse_scontrol_job(const std::string& text) {
  constexpr auto space = [](char letter) { return letter == ' '; };
  constexpr auto nothing = [](char) { return false; };
  ScontrolJob job;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto take = [&](auto& target, std::string_view name, bool (*ends)(char)) {
      if (const std::string value = field_in(line, name, ends); !value.empty() && target.empty()) target = value;
    };
    take(job.state, "JobState=", space);
    take(job.reason, "Reason=", space);
    take(job.name, "JobName=", nothing);
    take(job.log, "StdOut=", nothing);
    take(job.folder, "WorkDir=", nothing);
  }
  return job;
}

JobRecord find_job(std::int64_t job, const ScontrolJob& slurm, const fs::path& here) {
  JobRecord record;
  record.job = job;
  record.slurm = slurm;
  for (const fs::path& folder : {slurm.log.parent_path(), slurm.folder, here}) {
    const fs::path stem = folder.empty() ? fs::path() : stem_in(folder, job);
    if (stem.empty()) continue;
    record.attempts = attempts_in(stem.string() + ".attempts.jsonl", job);
    std::error_code error;
    record.output = fs::read_symlink(stem.string() + ".output", error);
    break;
  }
  return record;
}

bool has_ended(const JobRecord& record) {
  constexpr std::array<std::string_view, 6> unfinished = {"PENDING",    "RUNNING",  "SUSPENDED",
                                                          "COMPLETING", "REQUEUED", "CONFIGURING"};
  if (!record.slurm.state.empty()) return std::ranges::find(unfinished, record.slurm.state) == unfinished.end();
  return record.attempts.empty() || record.attempts.back().action == RetryAction::stop;
}

std::string job_text(const JobRecord& record) {
  const std::string state = record.slurm.state.empty() ? "not known to Slurm (any more)" : record.slurm.state;
  const bool waits = record.slurm.state == "PENDING" && !record.slurm.reason.empty();
  std::string text = fmt::format("job         {}{}{}: {}{}", record.job, record.slurm.name.empty() ? "" : " ",
                                 printable(record.slurm.name), printable(state),
                                 waits ? fmt::format(" ({})", printable(record.slurm.reason)) : "");
  if (record.attempts.empty()) return text + "\nattempt     none is written down";
  const Attempt& now = record.attempts.back();
  text += fmt::format("\nattempt     {}, retries: {} counted, {} not", now.attempt, now.counted_retries,
                      now.transient_retries);
  if (!now.nodes.empty()) text += fmt::format("; on {}", fmt::join(now.nodes, " "));
  if (const std::string end = last_end(record.attempts); !end.empty()) text += "\nended       " + end;
  return text;
}

}  // namespace lockstep
