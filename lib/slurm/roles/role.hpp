// A role: a command that a job runs in a number of instances, and what their ends mean for the job. OpenPAI calls it a
// task role.
//
// An instance is a Slurm task. It starts alone as a step of its own, or as a rank of a world. All instances of all
// roles that name the same world start as one step and share one MPI_COMM_WORLD. They end together and count as one. In
// a world, an instance with several GPUs starts a rank for each of them. Slurm allocates all tasks of a job at once, so
// the whole job is retried, never a single instance. Independent instances are tasks of a job array, each of which is a
// job of its own.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "slurm/roles/storage.hpp"

namespace lockstep {

// A completion policy's threshold that is never reached.
inline constexpr std::int64_t never = -1;

// Where a role's command runs, if not on the node itself (container.hpp).
struct Container {
  std::string program{};  // "apptainer", "charliecloud" or "pyxis"; empty: no container
  std::string image{};    // its path on the nodes; absolute

  bool operator==(const Container&) const = default;
};

struct Role {
  std::string name{};  // a letter or _, then letters, digits and _: part of variable names
  std::int64_t instances = 1;
  std::vector<std::string> command{};  // the program and its literal arguments; no shell reads them
  std::string world{};                 // same syntax as `name`; empty: each instance is by itself

  // Resources of one instance; 0: what the job gives each task.
  std::int64_t cpus = 0;
  std::int64_t memory_mb = 0;
  std::int64_t gpus = 0;

  // Ports reserved for each instance: label (same syntax as `name`) and count.
  std::map<std::string, std::int64_t> ports{};

  // The job fails once this many instances have failed, with the exit code of the last one. `never`: failures do not
  // end it.
  std::int64_t min_failed_instances = 1;
  // The job succeeds once this many instances have succeeded, and ends the others. `never`: once all instances of the
  // job have ended.
  std::int64_t min_succeeded_instances = instances;

  // In a task of a job array: the number of instances in the whole array, and the index of the only one in this job.
  // The thresholds above then apply to the array. 0: no array.
  std::int64_t array_instances = 0;
  std::int64_t first_instance = 0;

  Container container{};
  std::vector<Storage> storages{};
};

// The role's instances in all jobs.
inline std::int64_t all_instances(const Role& role) {
  return role.array_instances > 0 ? role.array_instances : role.instances;
}

// Ranks that an instance starts in its world: one for each of its GPUs, at least one. Without a world, an instance is
// one task with all of its GPUs.
std::int64_t ranks_per_instance(const Role& role);

// The group of each role. Roles that request the same resources share a group. Groups count from 0, in the order of
// their first roles. A job file with several groups becomes a heterogeneous job with a component for each.
std::vector<std::size_t> resource_groups(const std::vector<Role>& roles);

// Limits over all roles: each instance's environment names all instances, and the kernel passes about 2 MB.
inline constexpr std::int64_t max_instances = 4096;  // also of ranks
inline constexpr std::size_t max_roles = 100;
inline constexpr std::int64_t max_ports = 100;  // per instance

// Whether this is a valid name of a role, a world or a port label.
bool is_role_name(std::string_view name);

// Throws Error(usage) that names the role and the error. Code that takes roles from users or files calls it.
void check_roles(const std::vector<Role>& roles);

// The same role in the task `task` of a job array that has a task for each instance. Throws Error(usage) if it is not
// the only role, if its instances are ranks of a world, or if it has no such instance.
std::vector<Role> role_of_array_task(std::vector<Role> roles, std::int64_t task);

// "worker[3]"
std::string instance_name(const Role& role, std::int64_t instance);
// "ps[0], worker[0-3]"
std::string describe_roles(const std::vector<Role>& roles);

}  // namespace lockstep
