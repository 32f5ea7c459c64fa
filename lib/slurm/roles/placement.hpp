// Assigns role instances to the tasks of a Slurm allocation, and builds the srun commands that start them.
//
// The slots are the job's tasks in Slurm's own order, node by node. Each instance takes the next slot of its component.
// A heterogeneous job has a component for each role, or for each group of roles with the same resources.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "job/job_environment.hpp"
#include "slurm/roles/container.hpp"
#include "slurm/roles/role.hpp"

namespace lockstep {

struct InstanceSlot {
  std::size_t component = 0;
  std::string node;
  std::int64_t cpus = 1;  // of the component's tasks

  bool operator==(const InstanceSlot&) const = default;
};

// The node of each task, from Slurm's compact lists: "n[1-2]" and "2(x2)" give n1, n1, n2, n2. Throws Error(bad_data).
std::vector<std::string> task_nodes(std::string_view node_list, std::string_view tasks_per_node);

// One slot for each instance, role by role. Throws Error(usage) if there are too few tasks, if the number of components
// is neither 1 nor that of the roles or groups, or if roles of a world need different resources in one component.
std::vector<InstanceSlot> place_instances(const std::vector<Role>& roles,
                                          const std::vector<SlurmJob::Component>& components);

// Instances that start together: all instances of a world, or a single one without a world.
struct RoleStep {
  std::string name;                 // "training", "worker-3"
  std::vector<std::size_t> places;  // of each rank: the index of its instance in the list of all instances
};
std::vector<RoleStep> steps_of(const std::vector<Role>& roles);

// The srun command that starts `program`, without arguments, as each task of the step. It contains no part of a role's
// command. `mpi` is srun's --mpi; `host` is for roles in containers.
std::vector<std::string> srun_arguments(const RoleStep& step, const std::vector<Role>& roles,
                                        const std::vector<InstanceSlot>& slots, const std::string& mpi,
                                        const std::string& program, const ContainerHost& host = {});

}  // namespace lockstep
