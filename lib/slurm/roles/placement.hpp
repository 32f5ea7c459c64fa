// Where instances of roles run within what Slurm has given a job, and how they are started.
//
// A job's tasks are its slots, in Slurm's own order: node by node. Each instance takes the next one. In a heterogeneous
// job the first role has the first component's slots, the second role the second's, and so on.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "job/job_environment.hpp"
#include "slurm/roles/role.hpp"

namespace lockstep {

struct InstanceSlot {
  std::size_t component = 0;
  std::string node;

  bool operator==(const InstanceSlot&) const = default;
};

// The node of each task, from Slurm's short forms: "n[1-2]" and "2(x2)" are n1, n1, n2, n2. Throws Error(bad_data).
std::vector<std::string> task_nodes(std::string_view node_list, std::string_view tasks_per_node);

// For each instance, role by role. Throws Error(usage) where there are too few tasks, or other components than roles.
std::vector<InstanceSlot> place_instances(const std::vector<Role>& roles,
                                          const std::vector<SlurmJob::Component>& components);

// What is started at once: all instances of a world, or one that is by itself.
struct RoleStep {
  std::string name;                 // "training", "worker-3"
  std::vector<std::size_t> places;  // in the list of all instances, in the order of ranks
};
std::vector<RoleStep> steps_of(const std::vector<Role>& roles);

// The words of srun that start `program`, with no arguments, as each task of the step: nothing of a role's command is
// among them. `mpi` is srun's --mpi.
std::vector<std::string> srun_arguments(const RoleStep& step, const std::vector<Role>& roles,
                                        const std::vector<InstanceSlot>& slots, const std::string& mpi,
                                        const std::string& program);

}  // namespace lockstep
