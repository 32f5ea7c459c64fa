// When a job of several roles is over, and as what: OpenPAI's completion policy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "slurm/roles/role.hpp"

namespace lockstep {

// An instance that has ended by itself, not because the job was over. Those of one world end together, with one code.
struct InstanceEnd {
  std::size_t role = 0;  // its place in the list of roles
  std::int64_t instance = 0;
  int code = 0;  // 0: it succeeded
};

// Whether a signal has asked the job to stop, and so its instances.
enum class StopAsked : std::uint8_t { no, yes };

struct JobEnd {
  int code = 0;          // of the job
  std::string sentence;  // why, for people
};

// Whether an instance that ends with the code may have been told to: 75, or SIGTERM's.
bool is_end_by_request(int code);

// What the ends so far, in their order, make of the job; nothing while it is to go on. `roles` have passed
// check_roles().
//
// The first end that reaches a threshold of its role decides: min_failed_instances with the code of that end,
// min_succeeded_instances with 0. If none does and all instances have ended, the job has succeeded, whatever they ended
// with. After a request to stop, those that end with 75 or by a signal that asks or forces (SIGINT, SIGKILL, SIGUSR1,
// SIGTERM) have neither failed nor succeeded, and a job that nothing else decides has stopped early: 75.
std::optional<JobEnd> job_end(const std::vector<Role>& roles, const std::vector<InstanceEnd>& ends, StopAsked stop);

}  // namespace lockstep
