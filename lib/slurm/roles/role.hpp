// A role: a command that a job runs so many times, and what the ends of these instances mean for the job (the task
// roles of OpenPAI).
//
// An instance is a task of Slurm's. It is started alone, as a step of its own, or as a rank of a world: all instances
// of all roles that name the same world are started as one step, share one MPI_COMM_WORLD, and so end together and
// count as one. There is no retry of a single instance (OpenPAI's taskRetryCount): as in the platform, whose tasks are
// allocated all at once, a job is tried again as a whole.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// A threshold of a completion policy that is never reached.
inline constexpr std::int64_t never = -1;

struct Role {
  std::string name{};  // a letter or _, then letters, digits and _: part of the names of variables
  std::int64_t instances = 1;
  std::vector<std::string> command{};  // the program, and its arguments as they are; no shell reads them
  std::string world{};                 // named as roles are; empty: each instance is by itself

  // What an instance asks for; 0: what the job gives a task.
  std::int64_t cpus = 0;
  std::int64_t memory_mb = 0;
  std::int64_t gpus = 0;

  // Ports that are reserved for each instance: label (named as roles are) and count.
  std::map<std::string, std::int64_t> ports{};

  // When so many instances have failed the job fails, with the code of the last of them; `never`: whatever happens.
  std::int64_t min_failed_instances = 1;
  // When so many have succeeded the job has succeeded, and the rest is ended; `never`: when all of the job have ended.
  std::int64_t min_succeeded_instances = instances;
};

// Of all roles together: each instance's environment names all others, and the kernel passes on about 2 MB.
inline constexpr std::int64_t most_instances = 4096;
inline constexpr std::size_t most_roles = 100;
inline constexpr std::int64_t most_ports = 100;  // of an instance

// Whether a role, a world or a label of ports may have this name.
bool is_role_name(std::string_view name);

// Throws Error(usage) that names the role and what is wrong with it: whoever takes roles from people or files calls it.
void check_roles(const std::vector<Role>& roles);

// "worker[3]"
std::string instance_name(const Role& role, std::int64_t instance);
// "ps[0], worker[0-3]"
std::string describe_roles(const std::vector<Role>& roles);

}  // namespace lockstep
