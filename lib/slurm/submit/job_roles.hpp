// The roles of a job file: their resources and their rendered commands.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "slurm/roles/role.hpp"
#include "slurm/submit/job_commands.hpp"
#include "slurm/submit/job_fields.hpp"
#include "slurm/submit/job_plugins.hpp"
#include "slurm/submit/site_profile.hpp"

namespace lockstep {

// The other parts of the file that roles refer to. It points into the file's tree.
struct JobContext {
  References references;  // parameters and secrets
  Prerequisites prerequisites;
  std::vector<PluginCommands> plugins;    // in file order
  std::set<std::string> world;            // roles whose instances are ranks of one MPI_COMM_WORLD
  const YamlValue* deployment = nullptr;  // the deployment in use
  bool retries_tasks = false;             // instances are retried alone
  SiteProfile site;
  std::vector<Storage> storages;  // of all roles
};

// Reads an entry of taskRoles. Its commands become one bash script, which starts no further command after SIGUSR1,
// SIGTERM or code 75. Refuses as `reader` does, and warns about fields without effect.
Role read_role(JobReader& reader, const JobContext& context, const YamlEntry& entry);

}  // namespace lockstep
