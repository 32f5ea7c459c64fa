// Runs the roles of a job within what Slurm has given it: starts each world and each other instance as a step of its
// own, watches them, and ends the rest when the job is over (completion.hpp).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "slurm/roles/cluster.hpp"
#include "slurm/roles/placement.hpp"

namespace lockstep {

struct SupervisorOptions {
  Cluster cluster;  // the job, its roles and what it goes on from: where instances run is filled in
  std::vector<InstanceSlot> slots;
  std::filesystem::path cluster_file;  // absolute; beside it lie the verdicts of the steps
  std::string program;                 // start_instance
  std::string mpi = "pmix";            // srun's --mpi
  double arrival_seconds = 600;        // for all instances to join
  double grace_seconds = 30;           // from a request to end until the kill
};

struct SupervisedEnd {
  int code = 0;
  int signal = 0;    // that ended the instance which decided; 0: none
  std::string host;  // where that was; empty: nothing in particular
  std::string sentence;
};

// Returns when no step is left. What instances print goes to the log, with who printed it.
//
// SIGUSR1, SIGINT and SIGTERM are passed on to all instances, as a request to stop; but not a SIGTERM of Slurm's
// daemon, which sends it to the tasks itself. What has not ended `grace_seconds` after the first that has is killed.
// Who is ended because the job is over gets SIGUSR1 first, too: a program of ours stops in good order by it.
//
// Throws Error where a step cannot be started or cluster.json cannot be written.
SupervisedEnd supervise(const SupervisorOptions& options);

}  // namespace lockstep
