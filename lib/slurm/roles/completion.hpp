// Decides when a job with several roles is over, and with which exit code: OpenPAI's completion policy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "slurm/roles/role.hpp"

namespace lockstep {

// An instance that ended by itself, not because the job was over. Instances of one world end together, with one code.
struct InstanceEnd {
  std::size_t role = 0;  // index in the list of roles
  std::int64_t instance = 0;
  int code = 0;  // 0: success
};

// Whether a signal has asked the job, and so its instances, to stop.
enum class StopAsked : std::uint8_t { no, yes };

struct JobEnd {
  int code = 0;          // exit code of the job
  std::string sentence;  // human-readable reason
};

// Whether the code may come from a stop request: 75, or SIGTERM's.
bool is_end_by_request(int code);

// The job's result after the ends so far, in order; nullopt while the job continues. `roles` have passed check_roles().
//
// The first end that reaches a threshold of its role decides. min_failed_instances ends the job with the code of that
// end, min_succeeded_instances with 0. If no threshold is reached and all instances have ended, the job has succeeded,
// whatever their codes. The end of a task of a job array decides alone: the thresholds apply to the array. After a stop
// request, an instance that ends with 75 or by SIGINT, SIGKILL, SIGUSR1 or SIGTERM has neither failed nor succeeded. If
// nothing else decides, the job has then stopped early: 75.
std::optional<JobEnd> job_end(const std::vector<Role>& roles, const std::vector<InstanceEnd>& ends, StopAsked stop);

}  // namespace lockstep
