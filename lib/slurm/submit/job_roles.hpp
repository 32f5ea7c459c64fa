// The roles of a job file: their resources and their rendered commands.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "slurm/roles/role.hpp"
#include "slurm/submit/job_commands.hpp"
#include "slurm/submit/job_fields.hpp"

namespace lockstep {

// The other parts of the file that roles refer to. It points into the file's tree.
struct JobContext {
  // Lists of commands that run before and after a role's own.
  struct Hooks {
    std::vector<const YamlValue*> before;
    std::vector<const YamlValue*> after;
  };

  References references;                                                          // parameters and secrets
  std::map<std::pair<std::string, std::string>, const YamlValue*> prerequisites;  // by type and name
  Hooks callbacks;                                                                // for all roles
  std::set<std::string> world;            // roles whose instances are ranks of one MPI_COMM_WORLD
  const YamlValue* deployment = nullptr;  // the deployment in use
};

// Reads an entry of taskRoles. Its commands become one bash script, which starts no further command after SIGUSR1,
// SIGTERM or code 75. Refuses as `reader` does, and warns about fields without effect.
Role read_role(JobReader& reader, const JobContext& context, const YamlEntry& entry);

}  // namespace lockstep
