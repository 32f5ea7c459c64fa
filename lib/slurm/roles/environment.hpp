// The environment variables of a role's instance: Lockstep's own, and those that OpenPAI's programs read.
//
// Values may contain anything that a job name, a path or a command contains. They pass between processes unchanged or
// through exports_text(), and never as part of a script.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "slurm/roles/cluster.hpp"

namespace lockstep {

using Environment = std::map<std::string, std::string>;  // names: letters, digits and _

// The environment of cluster.instances[place]. Throws Error(usage) if two roles' names give the same variable. R is a
// role, I an instance, L a port label. Lists are separated by commas, instances in order.
//
//   LOCKSTEP_ROLE, LOCKSTEP_INSTANCE             this instance
//   LOCKSTEP_ATTEMPT                             how many times Slurm has requeued the job
//   LOCKSTEP_ROLES                               all roles
//   LOCKSTEP_INSTANCES_R                         number of instances of the role
//   LOCKSTEP_HOSTS_R, LOCKSTEP_ADDRESSES_R       of each instance
//   LOCKSTEP_PORTS_R_I_L                         port numbers that were free when all instances started
//   LOCKSTEP_MASTER_ADDRESS, LOCKSTEP_MASTER_PORT   of the first instance of the first role
//   LOCKSTEP_CHECKPOINT                          to resume from; unset: none
//   LOCKSTEP_STORAGE_S                           path of the role's storage S
//   PAI_..., FC_...                              as on OpenPAI (slurm/roles.md lists them)
//
// In a task of a job array, the numbers of instances are those of the array. Hosts, addresses and ports are only those
// of the instance itself.
Environment environment_of(const Cluster& cluster, std::size_t place);

// Variables that make MPI, NCCL and Gloo use a network interface. Throws Error(usage) if `interface` is not one of
// `known`, the interfaces of `host`.
Environment interface_environment(const std::string& interface, const std::vector<std::string>& known,
                                  const std::string& host);

// Input for bash's `read -r -d ''`: NAME=VALUE, each followed by a NUL byte.
std::string exports_text(const Environment& environment);
// For people: one variable a line, values escaped by base/text/printable.
std::string environment_table(const Environment& environment);

}  // namespace lockstep
