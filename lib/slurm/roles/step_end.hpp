// Determines why a step of a job with roles ended and which instance failed first. It uses the exit report and srun's
// messages about the tasks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "run/exit_report.hpp"
#include "slurm/roles/placement.hpp"

namespace lockstep {

// "srun: error: n3: task 2: Killed"
struct TaskEnd {
  std::vector<std::string> hosts;
  std::int64_t task = 0;  // the first one, numbered within its component of the job
  int signal = 0;         // 0: it exited by itself
  int code = 0;           // its exit code; 0: unknown
};
// Returns nullopt if `line` is not an srun message about a failed task.
std::optional<TaskEnd> parse_task_end(std::string_view line);
// Whether `line` is the srun message about a failed node: "srun: error: Node failure on n3".
bool is_node_failure(std::string_view line);
// Returns the message that better explains why the step ended: the earlier one, unless its task ended by SIGPIPE, which
// follows from another task's death.
TaskEnd first_cause(const std::optional<TaskEnd>& earlier, const TaskEnd& later);

struct StepEnd {
  int code = 0;
  int signal = 0;  // that ended the rank which failed first; 0: none or unknown
  std::string host;
  std::optional<std::size_t> first;  // index of the instance that failed first, among all instances; nullopt: unknown
  std::string sentence;              // from the exit report; empty: none
};
// `task` is srun's message, chosen by first_cause(). If a rank is alone on its node, no other rank can report the
// signal that ended it. Then srun's message supplies it.
StepEnd step_end(const RoleStep& step, const std::vector<InstanceSlot>& slots, int launcher_code,
                 const std::optional<ExitReport>& exit_report, const std::optional<TaskEnd>& task);

// Indices of the step's instances in the order in which they count as ended: the first failure, then the instances that
// it ended.
std::vector<std::size_t> places_by_end(const RoleStep& step, const StepEnd& end);

}  // namespace lockstep
