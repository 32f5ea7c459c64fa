#include "files/folder/lock_holder.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>
#include <random>

#include "base/process.hpp"
#include "base/text/json_text.hpp"

namespace lockstep {

namespace {

using Json = nlohmann::json;

// When a process started. Empty if it has ended.
std::string start_of(const std::optional<ProcessStat>& stat) {
  return stat && !stat->has_ended() ? fmt::format("{}@{}", stat->start_ticks, boot_id()) : "";
}

std::string random_token() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

}  // namespace

LockHolder this_lock_holder() { return lock_holder_of(::getpid(), this_job()); }

LockHolder lock_holder_of(std::int64_t process, const JobEnvironment& job) {
  LockHolder holder;
  if (job.slurm) {
    holder.job = std::to_string(job.slurm->id);
    holder.restarts = job.slurm->restarts;
  }
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  holder.host = host.data();
  holder.process = process;
  holder.start = start_of(process_stat(holder.process));
  holder.pid_namespace = pid_namespace();
  holder.token = random_token();
  return holder;
}

std::string lock_holder_text(const LockHolder& holder) {
  const Json json = {{"job", holder.job},         {"restarts", holder.restarts}, {"host", holder.host},
                     {"process", holder.process}, {"start", holder.start},       {"name_space", holder.pid_namespace},
                     {"token", holder.token}};
  return json_text(json);
}

std::optional<LockHolder> parse_lock_holder(const std::string& line) {
  try {
    const Json json = parse_json(line);
    LockHolder holder;
    json.at("job").get_to(holder.job);
    json.at("restarts").get_to(holder.restarts);
    json.at("host").get_to(holder.host);
    json.at("process").get_to(holder.process);
    json.at("start").get_to(holder.start);
    json.at("name_space").get_to(holder.pid_namespace);
    json.at("token").get_to(holder.token);
    return holder;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::string describe_lock_holder(const LockHolder& holder) {
  if (holder.job.empty()) return fmt::format("process {} on {}", holder.process, holder.host);
  return fmt::format("job {} on {} (process {})", holder.job, holder.host, holder.process);
}

Liveness liveness_of(const LockHolder& holder, const LockHolder& own) {
  if (!own.job.empty() && holder.job == own.job && holder.restarts < own.restarts) return Liveness::gone;
  const bool is_near = holder.host == own.host && holder.pid_namespace == own.pid_namespace && own.pid_namespace != 0;
  if (!is_near) return Liveness::unknown;
  const std::optional<ProcessStat> stat = process_stat(holder.process);
  if (start_of(stat) != holder.start) return Liveness::gone;
  return !stat || stat->state == 'T' || stat->state == 't' ? Liveness::unknown : Liveness::alive;
}

}  // namespace lockstep
