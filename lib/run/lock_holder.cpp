#include "run/lock_holder.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "base/process.hpp"
#include "base/text/json_text.hpp"
#include "base/text/printable.hpp"
#include "run/run_file.hpp"

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

std::optional<LockHolder> parse_lock_holder(std::string_view text) {
  const Json json = try_parse_json(text.substr(0, text.find('\n')));
  const auto number = [&](const char* field) { return count_in(json, field).value_or(0); };
  const LockHolder holder{text_in(json, "job"),   number("restarts"),   text_in(json, "host"), number("process"),
                          text_in(json, "start"), number("name_space"), text_in(json, "token")};
  return holder.token.empty() ? std::nullopt : std::optional(holder);
}

std::string describe_lock_holder(const LockHolder& holder) {
  const std::string host = printable(holder.host);
  if (holder.job.empty()) return fmt::format("process {} on {}", holder.process, host);
  return fmt::format("job {} on {} (process {})", printable(holder.job), host, holder.process);
}

Liveness liveness_of(const LockHolder& holder, const LockHolder& own) {
  if (!own.job.empty() && holder.job == own.job && holder.restarts < own.restarts) return Liveness::gone;
  const bool is_near = holder.host == own.host && holder.pid_namespace == own.pid_namespace && own.pid_namespace != 0;
  if (!is_near) return Liveness::unknown;
  const std::optional<ProcessStat> stat = process_stat(holder.process);
  if (start_of(stat) != holder.start) return Liveness::gone;
  return !stat || stat->state == 'T' || stat->state == 't' ? Liveness::unknown : Liveness::alive;
}

FolderHolder holder_of(const std::filesystem::path& folder) {
  constexpr std::size_t limit_bytes = 1 << 16;
  std::string lock = read_run_file(folder / run_files::lock, limit_bytes).value_or("");
  const std::optional<LockHolder> holder = parse_lock_holder(lock);
  const Liveness liveness = holder ? liveness_of(*holder, this_lock_holder()) : Liveness::gone;
  if (liveness == Liveness::gone) return {};
  const bool is_here = liveness == Liveness::alive;
  return {is_here ? FolderHolder::Kind::here : FolderHolder::Kind::elsewhere, *holder, std::move(lock)};
}

}  // namespace lockstep
