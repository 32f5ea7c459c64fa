// Runs the roles of a job within its Slurm allocation. Starts each world, and each instance without one, as its own
// step. Watches them, and ends the rest when the job is over (completion.hpp).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "run/exit_report.hpp"
#include "slurm/roles/cluster.hpp"
#include "slurm/roles/placement.hpp"
#include "slurm/status/scontrol_job.hpp"

namespace lockstep {

struct SupervisorOptions {
  Cluster cluster;   // the job, its roles and its checkpoint; locations are filled in later
  JobNumber number;  // by which scontrol shows this job alone
  std::vector<InstanceSlot> slots;
  std::filesystem::path cluster_file;  // absolute; the steps' exit reports are stored beside it
  std::string program;                 // path of start_instance
  ContainerHost host;                  // this node
  std::string mpi = "pmix";            // srun's --mpi
  double join_timeout_seconds = 600;   // for all instances to join
  double grace_seconds = 30;           // from the stop request to the forced end
};

// Returns when all steps have ended: the job's exit code, and of the deciding instance the signal, the host and the
// line that shows why it failed, if they are known. The log shows the instances' output, prefixed with the name of its
// step.
//
// Forwards SIGUSR1, SIGINT and SIGTERM to all instances as a stop request, except a SIGTERM from slurmstepd, which
// signals the tasks itself. Instances that still run `grace_seconds` after the first one has ended are killed. When the
// job is over, the remaining instances also get SIGUSR1 first, so that Lockstep's programs stop cleanly.
//
// Throws Error if a step cannot be started or cluster.json cannot be written.
ExitReport supervise(const SupervisorOptions& options);

}  // namespace lockstep
