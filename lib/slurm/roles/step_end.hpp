// Why a step of a job of roles has ended, and whose failure it was: from its exit report, and from what srun says of
// its tasks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "slurm/retry/attempt_facts.hpp"
#include "slurm/roles/placement.hpp"

namespace lockstep {

// "srun: error: n3: task 2: Killed"
struct TaskEnd {
  std::vector<std::string> hosts;
  std::int64_t task = 0;  // the first one, within its component of the job
  int signal = 0;         // 0: it ended by itself
};
// Nothing where `line` is none of srun's on a task that ended badly.
std::optional<TaskEnd> parse_task_end(std::string_view line);
// Of two lines, in this order, the one that tells more of why the step ended: the first, unless that task ended by
// SIGPIPE, which another one's death sends.
TaskEnd first_cause(const std::optional<TaskEnd>& earlier, const TaskEnd& later);

struct StepEnd {
  int code = 0;
  int signal = 0;  // that ended the rank which failed first; 0: none, or not known
  std::string host;
  std::optional<std::size_t> first;  // the place of the instance that failed first, among all; nothing: not known
  std::string sentence;              // the exit report's; empty: none
};
// `task` is what srun said of them, by first_cause(). A rank that is alone on its node leaves nobody there who could
// tell which signal ended it: then srun does.
StepEnd step_end(const RoleStep& step, const std::vector<InstanceSlot>& slots, int launcher_code,
                 const std::optional<ExitReport>& exit_report, const std::optional<TaskEnd>& task);

// The places of the step's instances, in the order in which they count as ended: the one that failed first, then those
// that it took along.
std::vector<std::size_t> places_by_end(const RoleStep& step, const StepEnd& end);

}  // namespace lockstep
