// What the environment says about this process's job: its launcher, its rank, and Slurm's variables.
//
// Read once, before MPI starts, because MPI adds variables of its own. No other code in lib or apps reads the
// environment (checked by tests/house). A value that is not a number, or is out of range, counts as not set.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// The launcher that made this process a rank. `none` in a Slurm batch script and in its shell.
enum class Launcher : std::uint8_t { none, mpirun, srun, pmi };

// "mpirun", "srun", "a PMI launcher"; empty for none.
std::string_view launcher_name(Launcher launcher);

struct SlurmJob {
  struct ArrayTask {
    std::int64_t array = 0;  // ID of the job array (SLURM_ARRAY_JOB_ID)
    std::int64_t task = 0;   // index of this job in the array
  };

  // A part of the job with nodes of its own. A job has one; a heterogeneous job (sbatch's "hetjob") has several.
  struct Component {
    std::string node_list;       // in Slurm's compact form: n[1-3,7]
    std::string tasks_per_node;  // in Slurm's compact form: 2(x3),1
    std::int64_t cpus = 1;       // per task
  };

  std::int64_t id = 0;
  std::string name;
  std::string user;
  std::string partition;
  std::vector<Component> components;    // as Slurm describes them to a batch script
  std::int64_t restarts = 0;            // how many times Slurm has requeued the job
  std::optional<std::int64_t> step;     // the ID of the srun step; none in a batch script or a shell
  std::optional<ArrayTask> array_task;  // none if the job is not part of an array
  std::optional<std::int64_t> nodes;    // number of nodes of the job
  std::string node_list;                // in Slurm's compact form: n[1-3,7]
  std::optional<std::int64_t> ends_at;  // seconds since 1970; set by Slurm 24.11 and later
};

// What squeue and scontrol call this job alone: "17", or "16_3" for an array task, because the last task of an array
// has the ID of the array.
std::string slurm_number(const SlurmJob& job);

// The variable of JobEnvironment::exit_report_file.
inline constexpr const char* exit_report_variable = "LOCKSTEP_VERDICT";

// The variable of JobEnvironment::start_timeout_seconds.
inline constexpr const char* start_timeout_variable = "LOCKSTEP_START_TIMEOUT";

// The variables that run_roles sets for the tasks that it starts (slurm/roles).
inline constexpr const char* rendezvous_variable = "LOCKSTEP_ARRIVAL";
inline constexpr const char* cluster_variable = "LOCKSTEP_CLUSTER";

// A task of a job with roles.
struct RoleTask {
  std::string arrival;                 // address of the rendezvous; set before the task is an instance
  std::filesystem::path cluster_file;  // cluster.json; empty if the job has no roles
  std::string role;                    // of the instance; set once the task is one
  std::optional<std::int64_t> instance;
};

// How mpirun ends its ranks: SIGCONT, SIGTERM, SIGKILL, `seconds` apart.
struct KillDelay {
  double seconds = 0;
  bool has_option = false;  // whether kill_delay_option sets the delay

  bool operator==(const KillDelay&) const = default;
};
inline constexpr const char* kill_delay_option = "odls_base_sigkill_timeout";  // Open MPI 4, integer seconds

struct JobEnvironment {
  struct Rank {
    std::int64_t rank = 0;
    std::int64_t ranks = 1;
  };

  Launcher launcher = Launcher::none;
  bool has_pmi = false;                 // whether MPI finds a PMI server; an srun step without --mpi has none
  std::optional<Rank> rank;             // according to mpirun, srun or PMI; use MPI's own answer to compute
  std::optional<KillDelay> kill_delay;  // of ranks that mpirun started
  std::optional<SlurmJob> slurm;
  RoleTask task;
  std::filesystem::path pmix_folder;   // of files that a rank shares with its PMIx server; empty: unknown
  std::string granted_gpus;            // variable in which Slurm grants this process GPUs, NAME=VALUE; empty: none
  std::string visible_gpus;            // CUDA_VISIBLE_DEVICES: which GPUs this process may use; empty: not stated
  std::string interface;               // network interface for MPI and NCCL; empty: their choice
  std::string exit_report_file;        // the exit report of this attempt, which the job script reads
  double start_timeout_seconds = 300;  // time limit of MPI's start; 0: no limit
  std::filesystem::path cache_folder;  // the user's, absolute (XDG_CACHE_HOME, else .cache in HOME); empty: none
  std::string mistake;  // an invalid LOCKSTEP_ variable; continues with "... Mend or unset it."; empty: none
};

// The value of a variable. Nothing if it is not set.
using Variables = std::function<std::optional<std::string>(const char* name)>;
JobEnvironment read_job_environment(const Variables& variables);

// The environment of this process at the first call.
const JobEnvironment& this_job();

}  // namespace lockstep
