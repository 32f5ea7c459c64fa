// What the environment tells this process of its job: who started it, as which rank, and what Slurm said.
//
// Read once, before MPI starts (which adds variables of its own). Nothing else in lib or apps asks the environment
// (tests/house holds it to that). Text that is no number, or a number out of range, counts as not set.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// What made this process a rank. A batch script of Slurm's, or its shell, does not.
enum class Launcher : std::uint8_t { none, mpirun, srun, pmi };

// "mpirun", "srun", "a PMI launcher"; empty for none.
std::string_view launcher_name(Launcher launcher);

struct SlurmJob {
  struct ArrayTask {
    std::int64_t array = 0;  // the number of the job array, that of its first job
    std::int64_t task = 0;   // this job's place in it
  };

  // A part of the job with nodes of its own. A job has one, a heterogeneous job (sbatch's "hetjob") several.
  struct Component {
    std::string node_list;       // in Slurm's short form: n[1-3,7]
    std::string tasks_per_node;  // likewise: 2(x3),1
  };

  std::int64_t id = 0;
  std::string name;
  std::string user;
  std::string partition;
  std::vector<Component> components;    // as a batch script is told
  std::int64_t restarts = 0;            // how many times Slurm has put it back into the queue
  std::optional<std::int64_t> step;     // srun's count; none in a batch script or a shell
  std::optional<ArrayTask> array_task;  // none: not of a job array
  std::optional<std::int64_t> nodes;    // that the job has
  std::string node_list;                // in Slurm's short form: n[1-3,7]
  std::optional<std::int64_t> ends_at;  // seconds since 1970; told since Slurm 24.11
};

// Names the file of JobEnvironment::verdict_file.
inline constexpr const char* exit_report_variable = "LOCKSTEP_VERDICT";

// Names JobEnvironment::start_timeout_seconds.
inline constexpr const char* start_timeout_variable = "LOCKSTEP_START_TIMEOUT";

// What run_roles tells the tasks that it starts (slurm/roles).
inline constexpr const char* rendezvous_variable = "LOCKSTEP_ARRIVAL";
inline constexpr const char* cluster_variable = "LOCKSTEP_CLUSTER";

// Of a task that runs in a role of a job.
struct RoleTask {
  std::string arrival;                 // where to join, before the task is an instance
  std::filesystem::path cluster_file;  // cluster.json; empty: of no such job
  std::string role;                    // of the instance, once it is one
  std::optional<std::int64_t> instance;
};

// How mpirun ends its ranks: SIGCONT, SIGTERM, SIGKILL, with `seconds` between one and the next.
struct KillDelay {
  double seconds = 0;
  bool has_option = false;  // whether kill_delay_option sets them

  bool operator==(const KillDelay&) const = default;
};
inline constexpr const char* kill_delay_option = "odls_base_sigkill_timeout";  // Open MPI 4, whole seconds

struct JobEnvironment {
  struct Rank {
    std::int64_t rank = 0;
    std::int64_t ranks = 1;
  };

  Launcher launcher = Launcher::none;
  bool has_pmi = false;      // whether MPI finds a launcher to speak to; a step of srun without --mpi has none
  std::optional<Rank> rank;  // as mpirun, srun or PMI counts; MPI's own answer is the one to compute with
  std::optional<KillDelay> kill_delay;  // of ranks that mpirun started
  std::optional<SlurmJob> slurm;
  RoleTask task;
  std::string interface;               // of the network that MPI and NCCL are to use; empty: whichever they choose
  std::string verdict_file;            // where the job script looks for why this attempt ended
  double start_timeout_seconds = 300;  // that MPI may take to start; 0: as long as it likes
  std::filesystem::path cache_folder;  // the user's, absolute (XDG_CACHE_HOME, else .cache in HOME); empty: none
  std::string mistake;  // in a variable of ours, in words that go on "... Mend or unset it."; empty: none
};

// The value of a variable; nothing where it is not set.
using Variables = std::function<std::optional<std::string>(const char* name)>;
JobEnvironment read_job_environment(const Variables& variables);

// This process's own, as it was at the first call.
const JobEnvironment& this_job();

}  // namespace lockstep
