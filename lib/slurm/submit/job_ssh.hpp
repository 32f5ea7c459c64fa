// OpenPAI's runtime plugin `ssh`.
#pragma once

#include <string>
#include <string_view>

#include "slurm/submit/job_fields.hpp"
#include "slurm/submit/job_file.hpp"

namespace lockstep {

// Whether its parameters request connections between the instances (`jobssh`). Refuses unknown parameters.
bool read_ssh_plugin(JobReader& reader, const YamlValue& parameters);

// The first word of the text that consists of `beginning` and digits: "worker-0" for "worker-". Empty if there is none.
std::string instance_in(std::string_view text, std::string_view beginning);

// Refuses commands that name an instance which they cannot reach: for mpirun or ssh without `jobssh`, in a container,
// or because the job does not have it. Warns that `jobssh` does not reach containers. `line` is that of the roles.
void check_ssh(JobReader& reader, const JobFile& job, int line);

}  // namespace lockstep
