#include "slurm/roles/completion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <numeric>

#include "base/error.hpp"
#include "base/text/counted.hpp"

namespace lockstep {
namespace {

constexpr int stopped_early = static_cast<int>(Failure::stopped_early);
constexpr int signal_base = 128;  // shells and srun add it to a signal's number

bool has_stopped(int code, StopAsked stop) {
  constexpr std::array<int, 5> codes = {stopped_early, signal_base + SIGINT, signal_base + SIGKILL,
                                        signal_base + SIGUSR1, signal_base + SIGTERM};
  return stop == StopAsked::yes && std::ranges::find(codes, code) != codes.end();
}

struct Tally {
  std::int64_t failed = 0;
  std::int64_t succeeded = 0;
  std::int64_t stopped = 0;
  const InstanceEnd* first_failed = nullptr;
};

std::string describe_end(const Role& role, const InstanceEnd& end) {
  return fmt::format("{} with code {}", instance_name(role, end.instance), end.code);
}

JobEnd failed_by(const Role& role, const InstanceEnd& end, const Tally& tally) {
  const std::string whose =
      tally.failed == 1
          ? describe_end(role, end)
          : fmt::format("first {}, last {}", describe_end(role, *tally.first_failed), describe_end(role, end));
  return {end.code, fmt::format("role '{}' failed: {} of its {} instances failed (min_failed_instances {}), {}.",
                                role.name, tally.failed, role.instances, role.min_failed_instances, whose)};
}

JobEnd done_by(const Role& role, const Tally& tally) {
  return {0, fmt::format("role '{}' succeeded: {} of its {} instances succeeded (min_succeeded_instances {}).",
                         role.name, tally.succeeded, role.instances, role.min_succeeded_instances)};
}

std::string describe_array_task(const Role& role, const InstanceEnd& end) {
  return end.code == 0 ? fmt::format("{} succeeded.", instance_name(role, end.instance))
                       : fmt::format("{} failed with code {}.", instance_name(role, end.instance), end.code);
}

std::int64_t instance_count(const std::vector<Role>& roles) {
  return std::accumulate(roles.begin(), roles.end(), std::int64_t{0},
                         [](std::int64_t sum, const Role& role) { return sum + role.instances; });
}

}  // namespace

bool is_end_by_request(int code) { return code == stopped_early || code == signal_base + SIGTERM; }

std::optional<JobEnd> job_end(const std::vector<Role>& roles, const std::vector<InstanceEnd>& ends, StopAsked stop) {
  std::vector<Tally> tallies(roles.size());
  Tally all;
  for (const InstanceEnd& end : ends) {
    const Role& role = roles.at(end.role);
    if (role.array_instances > 0 && !has_stopped(end.code, stop))
      return JobEnd{end.code, describe_array_task(role, end)};
    Tally& tally = tallies.at(end.role);
    if (end.code == 0) {
      ++all.succeeded;
      if (++tally.succeeded == role.min_succeeded_instances) return done_by(role, tally);
    } else if (has_stopped(end.code, stop)) {
      ++all.stopped;
    } else {
      ++all.failed;
      if (tally.failed == 0) tally.first_failed = &end;
      if (++tally.failed == role.min_failed_instances) return failed_by(role, end, tally);
    }
  }
  if (static_cast<std::int64_t>(ends.size()) < instance_count(roles)) return std::nullopt;
  if (all.stopped > 0) {
    return JobEnd{stopped_early, fmt::format("a signal stopped the job early: {} stopped, {} succeeded and {} failed.",
                                             counted(all.stopped, "instance"), all.succeeded, all.failed)};
  }
  return JobEnd{0, fmt::format("all instances ended: {} succeeded and {} failed. No role's policy decided the result.",
                               all.succeeded, all.failed)};
}

}  // namespace lockstep
