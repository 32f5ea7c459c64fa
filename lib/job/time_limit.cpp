#include "job/time_limit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <limits>
#include <memory>

namespace lockstep {

namespace {

std::string output_of(const std::string& command) {
  const auto close = [](FILE* pipe) { ::pclose(pipe); };
  const std::unique_ptr<FILE, decltype(close)> pipe(::popen(command.c_str(), "re"), close);  // NOLINT(cert-env33-c)
  std::array<char, 256> line{};
  if (pipe == nullptr || std::fgets(line.data(), line.size(), pipe.get()) == nullptr) return "";
  return line.data();
}

}  // namespace

std::optional<double> parse_slurm_time(const std::string& text) {
  std::tm local{};
  if (::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &local) == nullptr) return std::nullopt;
  local.tm_isdst = -1;
  const std::time_t time = std::mktime(&local);
  return time < 0 ? std::nullopt : std::optional(static_cast<double>(time));
}

std::optional<double> end_time_of(const SlurmJob& job) {
  if (job.ends_at) return static_cast<double>(*job.ends_at);
  return parse_slurm_time(output_of(fmt::format("timeout 10 squeue -h -j {} -o %e 2>/dev/null", slurm_number(job))));
}

TimeLimit::TimeLimit(std::optional<double> limit_seconds, const std::optional<SlurmJob>& job)
    : seconds_(limit_seconds) {
  if (seconds_) source_ = "--time-limit";
  const std::optional<double> end = job ? end_time_of(*job) : std::nullopt;
  if (!end) return;
  const double left = std::max(0.0, *end - static_cast<double>(std::time(nullptr)));
  if (seconds_ && *seconds_ <= left) return;
  seconds_ = left;
  source_ = "Slurm's time limit";
}

double TimeLimit::seconds_left() const {
  return seconds_ ? *seconds_ - watch_.seconds() : std::numeric_limits<double>::infinity();
}

const std::string& TimeLimit::source() const { return source_; }

}  // namespace lockstep
