#include "slurm/submit/job_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "slurm/roles/cluster.hpp"
#include "slurm/roles/role_file.hpp"
#include "slurm/roles/training_folders.hpp"
#include "slurm/submit/shell_text.hpp"

namespace lockstep {
namespace {

std::string exports(const std::map<std::string, std::string>& variables) {
  std::string text;
  for (const auto& [name, value] : variables) text += fmt::format("export {}={}\n", name, shell_word(value));
  return text;
}

// "0-49%10": a task for each instance.
std::string array_range(const Role& role, const JobArray& array) {
  return fmt::format("0-{}{}", role.instances - 1, array.throttle > 0 ? fmt::format("%{}", array.throttle) : "");
}

// A part of the job with tasks of its own: `role` is one of several roles with the same resources.
std::string component_options(const Role& role, std::int64_t tasks, std::int64_t cpus) {
  std::string text = fmt::format("#SBATCH --ntasks={}\n#SBATCH --cpus-per-task={}\n", tasks, cpus);
  if (role.memory_mb > 0) text += fmt::format("#SBATCH --mem-per-cpu={}M\n", (role.memory_mb + cpus - 1) / cpus);
  if (role.gpus > 0) text += fmt::format("#SBATCH --gpus-per-task={}\n", role.gpus);
  return text;
}

// sbatch reads its options up to the first command. It applies those before the first `hetjob` that concern the whole
// job, such as --requeue, to all components.
std::string sbatch_options(const JobFile& job) {
  std::string text = fmt::format("#SBATCH --job-name={}\n#SBATCH --requeue\n#SBATCH --open-mode=append\n", job.name);
  const std::vector<std::size_t> groups = resource_groups(job.roles);
  for (std::size_t group = 0; group <= std::ranges::max(groups); ++group) {
    const Role* one = nullptr;
    std::int64_t tasks = 0;
    std::int64_t cpus = 1;
    for (std::size_t index = 0; index < groups.size(); ++index) {
      if (groups[index] != group) continue;
      one = &job.roles[index];
      tasks += one->instances;
      cpus = std::max({cpus, one->cpus, ranks_per_instance(*one)});
    }
    if (group > 0) text += "#SBATCH hetjob\n";
    text += component_options(*one, job.array ? 1 : tasks, cpus);
  }
  if (job.nodes > 0) {  // of a job with one component
    text += fmt::format("#SBATCH --nodes={}\n#SBATCH --ntasks-per-node={}\n", job.nodes,
                        instances_of(job.roles).size() / static_cast<std::size_t>(job.nodes));
  }
  if (job.array) text += fmt::format("#SBATCH --array={}\n", array_range(job.roles.front(), *job.array));
  return text;
}

// A requeued job needs its secrets again. Any other end removes them, so they are read after begin_attempt, which does
// not start a finished job again. In a job array, job_array.sh removes them.
constexpr std::string_view remove_secrets_lines = R"(remove_secrets() {
  ask_for_job
  [ -z "$job_state" ] || ((job_restarts > attempt)) || rm -f -- "$secrets"
}
trap remove_secrets EXIT
)";
constexpr std::string_view secrets_lines =
    R"(if ! { [ -f "$secrets" ] && [ ! -L "$secrets" ] && [ -O "$secrets" ]; }; then
  say "cannot use the job's secrets: '$secrets' is missing, a link or another user's file. Submit the job again."
  end_attempt 2
fi
source "$secrets"
)";

// After begin_attempt, whose modules may change PATH. Inside a Slurm job, mpirun would otherwise replace the hosts of
// -H and its host file by Slurm's, and bind the ranks of two instances on one node to the same processors. Open MPI 4
// reads OMPI_MCA_..., Open MPI 5 PRTE_MCA_...
constexpr std::string_view ssh_lines = R"(
PATH=$library/instance_ssh:$PATH
export OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent=ssh OMPI_MCA_ras=^slurm OMPI_MCA_hwloc_base_binding_policy=none
export PRTE_MCA_plm=ssh PRTE_MCA_plm_ssh_agent=ssh PRTE_MCA_ras=^slurm PRTE_MCA_hwloc_default_binding_policy=none)";

}  // namespace

std::string job_script(const JobFile& job, const ScriptPaths& place) {
  std::string text = "#!/usr/bin/env bash\n" + sbatch_options(job);
  text += "# Written by submit_job.\n";
  text += fmt::format("library={}\nsource \"$library/job.sh\" || exit 2\n", shell_word(place.library.string()));
  if (job.array) text += "source \"$library/job_array.sh\" || exit 2\n";
  text += fmt::format("JOB_RETRY_COUNT={}\nPATH=$programs:$PATH\n",
                      job.array ? job.array->task_retry_count : job.job_retry_count);
  text += exports(job.parameters);
  if (!place.secrets.empty()) text += fmt::format("secrets={}\n", shell_word(place.secrets.string()));
  if (job.array) {
    const Role& role = job.roles.front();
    text += fmt::format("begin_array_task {} {}\n", role.min_failed_instances, role.min_succeeded_instances);
  } else if (!place.secrets.empty()) {
    text += remove_secrets_lines;
  }
  text += "begin_attempt run_roles";
  const TrainingFolders folders =
      job.output.empty() ? training_folders(job.roles) : TrainingFolders{job.output, job.output + "/checkpoints"};
  if (!folders.checkpoints.empty()) {
    text += fmt::format(" --output {} --checkpoints {}", shell_word(folders.output.string()),
                        shell_word(folders.checkpoints.string()));
  }
  if (job.has_ssh && !job.array) text += ssh_lines;
  text += "\n";
  if (!place.secrets.empty()) text += secrets_lines;
  text +=
      fmt::format("roles=$record.roles.json\nwrite_whole \"$roles\" {} || exit\n", shell_word(roles_text(job.roles)));
  text += R"(run_here run_roles "$roles" --cluster "$record.cluster.$attempt.json")";
  if (!folders.checkpoints.empty()) text += " --checkpoints \"$checkpoints\"";
  if (job.array) text += " --array-task \"$SLURM_ARRAY_TASK_ID\"";
  return text + "\nend_attempt $?\n";
}

std::string secrets_text(const JobFile& job) { return exports(job.secrets); }

}  // namespace lockstep
