// OpenPAI's runtime plugin `ssh`.
#pragma once

#include "slurm/submit/job_fields.hpp"

namespace lockstep {

// Whether its parameters request connections between the instances (`jobssh`). Refuses unknown parameters.
bool read_ssh_plugin(JobReader& reader, const YamlValue& parameters);

}  // namespace lockstep
