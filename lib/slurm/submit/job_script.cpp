#include "slurm/submit/job_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

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

// sbatch reads its options up to the first command. All tasks are identical: each gets the largest request of any role.
std::string sbatch_options(const JobFile& job) {
  Role most;
  most.instances = 0;
  most.cpus = 1;
  for (const Role& role : job.roles) {
    most.instances += role.instances;
    most.cpus = std::max(most.cpus, role.cpus);
    most.memory_mb = std::max(most.memory_mb, role.memory_mb);
    most.gpus = std::max(most.gpus, role.gpus);
  }
  std::string text = fmt::format("#SBATCH --job-name={}\n#SBATCH --ntasks={}\n#SBATCH --cpus-per-task={}\n", job.name,
                                 most.instances, most.cpus);
  if (job.nodes > 0) {
    text += fmt::format("#SBATCH --nodes={}\n#SBATCH --ntasks-per-node={}\n", job.nodes, most.instances / job.nodes);
  }
  if (most.memory_mb > 0) {
    text += fmt::format("#SBATCH --mem-per-cpu={}M\n", (most.memory_mb + most.cpus - 1) / most.cpus);
  }
  if (most.gpus > 0) text += fmt::format("#SBATCH --gpus-per-task={}\n", most.gpus);
  return text + "#SBATCH --requeue\n#SBATCH --open-mode=append\n";
}

// A requeued job needs its secrets again. Any other end removes them.
constexpr std::string_view secrets_lines = R"(remove_secrets() {
  ask_for_job
  [ -z "$job_state" ] || ((job_restarts > attempt)) || rm -f -- "$secrets"
}
[ -f "$secrets" ] && [ ! -L "$secrets" ] && [ -O "$secrets" ] ||
  refuse "cannot use the job's secrets: '$secrets' is missing, a link or another user's file. Submit the job again."
trap remove_secrets EXIT
source "$secrets"
)";

}  // namespace

std::string job_script(const JobFile& job, const ScriptPaths& place) {
  std::string text = "#!/usr/bin/env bash\n" + sbatch_options(job);
  text += "# Written by submit_job.\n";
  text += fmt::format("library={}\nsource \"$library/job.sh\" || exit 2\n", shell_word(place.library.string()));
  text += fmt::format("JOB_RETRY_COUNT={}\nPATH=$programs:$PATH\n", job.job_retry_count);
  text += exports(job.parameters);
  if (!place.secrets.empty()) {
    text += fmt::format("secrets={}\n{}", shell_word(place.secrets.string()), secrets_lines);
  }
  text += "begin_attempt run_roles";
  const TrainingFolders folders =
      job.output.empty() ? training_folders(job.roles) : TrainingFolders{job.output, job.output + "/checkpoints"};
  if (!folders.checkpoints.empty()) {
    text += fmt::format(" --output {} --checkpoints {}", shell_word(folders.output.string()),
                        shell_word(folders.checkpoints.string()));
  }
  text +=
      fmt::format("\nroles=$record.roles.json\nwrite_whole \"$roles\" {} || exit\n", shell_word(roles_text(job.roles)));
  text += R"(run_here run_roles "$roles" --cluster "$record.cluster.$attempt.json")";
  if (!folders.checkpoints.empty()) text += " --checkpoints \"$checkpoints\"";
  return text + "\nend_attempt $?\n";
}

std::string secrets_text(const JobFile& job) { return exports(job.secrets); }

}  // namespace lockstep
