// OpenPAI's runtime plugin `ssh`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "slurm/roles/role.hpp"
#include "slurm/submit/job_fields.hpp"

namespace lockstep {

// Whether its parameters request connections between the instances (`jobssh`). Refuses unknown parameters.
bool read_ssh_plugin(JobReader& reader, const YamlValue& parameters);

// The first word of the text that consists of `beginning` and digits: "worker-0" for "worker-". Empty if there is none.
std::string instance_in(std::string_view text, std::string_view beginning);

// The first instance that the commands of a role in a container name, such as "worker-0"; empty: none.
std::string instance_in_containers(const std::vector<Role>& roles);

}  // namespace lockstep
