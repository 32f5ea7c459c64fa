#include "slurm/submit/job_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/error.hpp"
#include "slurm/submit/shell_text.hpp"

namespace lockstep {
namespace {

std::string exports(const std::map<std::string, std::string>& variables) {
  std::string text;
  for (const auto& [name, value] : variables) text += fmt::format("export {}={}\n", name, shell_word(value));
  return text;
}

// sbatch reads them up to the first command.
std::string sbatch_options(const JobFile& job, const Role& role) {
  std::string text = fmt::format("#SBATCH --job-name={}\n#SBATCH --ntasks={}\n", job.name, role.instances);
  const std::int64_t cpus = std::max<std::int64_t>(role.cpus, 1);
  text += fmt::format("#SBATCH --cpus-per-task={}\n", cpus);
  if (role.memory_mb > 0) text += fmt::format("#SBATCH --mem-per-cpu={}M\n", (role.memory_mb + cpus - 1) / cpus);
  if (role.gpus > 0) text += fmt::format("#SBATCH --gpus-per-task={}\n", role.gpus);
  return text + "#SBATCH --requeue\n#SBATCH --open-mode=append\n";
}

// A requeued job needs its secrets again; whatever else ends it removes them.
constexpr std::string_view secrets_lines = R"(remove_secrets() {
  ask_for_job
  case $job_state in
    '' | PENDING | REQUEUED | REQUEUE_HOLD | SPECIAL_EXIT) ;;
    *) rm -f -- "$secrets" ;;
  esac
}
[ -f "$secrets" ] && [ ! -L "$secrets" ] && [ -O "$secrets" ] ||
  refuse "the job's secrets are gone: '$secrets' is not there, or another user's. Submit the job again."
trap remove_secrets EXIT
source "$secrets"
)";

}  // namespace

std::string job_script(const JobFile& job, const ScriptPlace& place) {
  require(job.roles.size() == 1 && !job.roles.front().world.empty(), Failure::usage,
          "the job '{}' has several roles, or instances that are not ranks of one world (extras.lockstep.world names "
          "the role whose instances are). Submit a job of one such role.",
          job.name);
  const Role& role = job.roles.front();
  std::string text = "#!/usr/bin/env bash\n" + sbatch_options(job, role);
  text += "# Written by submit_job.\n";
  text += fmt::format("library={}\nsource \"$library/job.sh\" || exit 2\n", shell_word(place.library.string()));
  text += fmt::format("JOB_RETRY_COUNT={}\nPATH=$programs:$PATH\n", job.job_retry_count);
  text += exports(job.parameters);
  if (!place.secrets.empty()) {
    text += fmt::format("secrets={}\n{}", shell_word(place.secrets.string()), secrets_lines);
  }
  text += "begin_attempt submit_job";
  if (!job.output.empty()) text += " --output " + shell_word(job.output);
  text += "\nrun_ranks \"$BASH\"";
  for (std::size_t word = 1; word < role.command.size(); ++word) text += " " + shell_word(role.command[word]);
  return text + "\nend_attempt $?\n";
}

std::string secrets_text(const JobFile& job) { return exports(job.secrets); }

}  // namespace lockstep
