// The variables that an instance of a role finds in its environment: ours, and those that programs from OpenPAI read.
//
// Values may hold whatever a job's name, a path or a command holds. So they go from process to process as they are, or
// through exports_text(), and never into the text of a script.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "slurm/roles/cluster.hpp"

namespace lockstep {

using Environment = std::map<std::string, std::string>;  // names: letters, digits and _

// Of cluster.instances[place]. Throws Error(usage) where the names of two roles make one variable of two. R stands for
// a role, I for an instance, L for a label of ports; lists are separated by commas, instances in order.
//
//   LOCKSTEP_ROLE, LOCKSTEP_INSTANCE             which this is
//   LOCKSTEP_ATTEMPT                             how many times the job was put back into the queue
//   LOCKSTEP_ROLES                               all roles
//   LOCKSTEP_INSTANCES_R                         how many
//   LOCKSTEP_HOSTS_R, LOCKSTEP_ADDRESSES_R       of each instance
//   LOCKSTEP_PORTS_R_I_L                         numbers, free when all instances started
//   LOCKSTEP_MASTER_ADDRESS, LOCKSTEP_MASTER_PORT   of the first instance of the first role
//   LOCKSTEP_CHECKPOINT                          to go on from; not set: none
//   PAI_..., FC_...                              as the platform has them (slurm/roles.md lists them)
Environment environment_of(const Cluster& cluster, std::size_t place);

// The network interface that MPI, NCCL and Gloo are to use. Throws Error(usage) if `interface` is not one of `known`,
// which `host` has.
Environment interface_environment(const std::string& interface, const std::vector<std::string>& known,
                                  const std::string& host);

// For a shell's `read -r -d ''`: NAME=VALUE, each followed by a zero byte.
std::string exports_text(const Environment& environment);
// For people: a variable a line, values as base/text/printable shows them.
std::string environment_table(const Environment& environment);

}  // namespace lockstep
