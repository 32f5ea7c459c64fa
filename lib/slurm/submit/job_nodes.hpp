// How a job file's roles share nodes.
#pragma once

#include "slurm/submit/job_fields.hpp"
#include "slurm/submit/job_file.hpp"

namespace lockstep {

// Refuses 'nodes' (null: the file does not state it) if it does not divide the instances equally. Warns, on the roles'
// `line`, if roles request different resources: such a job needs a node for each of its components at once.
void check_nodes(JobReader& reader, const JobFile& job, const YamlValue* nodes, int line);

}  // namespace lockstep
