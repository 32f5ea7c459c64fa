// Runs a job with several roles within its Slurm allocation. Called in a batch script, with the roles in a file.
//
//   run_roles roles.json
#include <cstdio>
#include <filesystem>

#include "base/error.hpp"
#include "base/log.hpp"
#include "files/result_file.hpp"
#include "job/job_environment.hpp"
#include "launch/number_option.hpp"
#include "launch/result_options.hpp"
#include "launch/run_outside_ranks.hpp"
#include "run/checkpoint_files.hpp"
#include "runtime/failure/failure_report.hpp"
#include "slurm/roles/role_file.hpp"
#include "slurm/roles/supervisor.hpp"
#include "slurm/roles/training_folders.hpp"

using namespace lockstep;

namespace {

void require_place_for_cluster_file(const std::filesystem::path& file) {
  const auto begins_as_cluster = [](std::string_view start) { return start.starts_with("{\n \"attempt\":"); };
  require_place_for_result(file, {"cluster file", begins_as_cluster}, "--cluster");
}

struct RoleOptions {
  std::filesystem::path roles;
  std::filesystem::path cluster;
  std::filesystem::path checkpoints;
  bool prints_folders = false;
  std::optional<std::int64_t> array_task;
  SupervisorOptions plan;

  void declare(CLI::App& app) {
    constexpr double day = 86400;
    app.description(
        "Runs a job with several roles in its Slurm allocation. The exit code is that of the instance that decides.");
    app.add_option("ROLES", roles, "JSON file of the roles, in the format of slurm/roles.md")
        ->required()
        ->type_name("FILE");
    add_result(app, "--cluster", cluster, require_place_for_cluster_file,
               "Record hosts and ports of all instances in this file (default: cluster-JOB.ATTEMPT.json)");
    app.add_option("--checkpoints", checkpoints,
                   "Folder whose newest checkpoint instances find in LOCKSTEP_CHECKPOINT (default: that of the roles' "
                   "trainings, if their commands name one)")
        ->type_name("FOLDER");
    app.add_flag("--print-folders", prints_folders,
                 "Only print the roles' --output and --checkpoints, if known, each word with a final NUL (for "
                 "run_roles.sbatch)");
    add_number(app, "--array-task", array_task, {0, max_instances - 1},
               "Run only this instance of the role, as a task of a job array (SLURM_ARRAY_TASK_ID)");
    app.add_option("--mpi", plan.mpi, "Value of srun's --mpi");
    add_number(app, "--arrival-timeout", plan.join_timeout_seconds, {1, day},
               "Seconds within which all instances must report");
    add_number(app, "--grace", plan.grace_seconds, {0, day},
               "Seconds from the stop request to the kill of an instance");
    app.footer("Examples:\n  run_roles roles.json\n  run_roles roles.json --checkpoints runs/r20/checkpoints");
  }
};

const SlurmJob& job_of_slurm() {
  const JobEnvironment& job = this_job();
  require(
      job.slurm.has_value(), Failure::usage,
      "run_roles needs a Slurm job, because it starts roles with srun. Call it in a batch script, or after salloc.");
  return *job.slurm;
}

std::filesystem::path cluster_file(const RoleOptions& options, const SlurmJob& job) {
  if (!options.cluster.empty()) return std::filesystem::absolute(options.cluster);
  return std::filesystem::absolute(fmt::format("cluster-{}.{}.json", job.id, job.restarts));
}

int print_folders(const RoleOptions& options) {
  const TrainingFolders folders = training_folders(read_roles(options.roles));
  if (folders.checkpoints.empty()) return 0;
  std::string text;
  for (const std::string& word :
       {std::string("--output"), folders.output.string(), std::string("--checkpoints"), folders.checkpoints.string()}) {
    text += word + '\0';
  }
  require(std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0, Failure::other,
          "cannot write the folders to standard output. Check the program that reads it.");
  return 0;
}

int run_all(const RoleOptions& options) {
  const SlurmJob& job = job_of_slurm();
  SupervisorOptions plan = options.plan;
  plan.cluster.job = {job.id, job.name, job.user, job.partition, std::filesystem::current_path().string()};
  plan.number = parse_job_number(slurm_number(job)).value();
  plan.cluster.attempt = job.restarts;
  plan.cluster.roles = read_roles(options.roles);
  if (options.array_task) plan.cluster.roles = role_of_array_task(plan.cluster.roles, *options.array_task);
  const std::filesystem::path checkpoints =
      options.checkpoints.empty() ? training_folders(plan.cluster.roles).checkpoints : options.checkpoints;
  if (const auto newest = newest_checkpoint(checkpoints)) {
    plan.cluster.checkpoint = std::filesystem::absolute(newest->path).string();
  }
  plan.slots = place_instances(plan.cluster.roles, job.components);
  plan.cluster_file = cluster_file(options, job);
  plan.host = {.name = log::host(),
               .folder = std::filesystem::current_path(),
               .programs = std::filesystem::read_symlink("/proc/self/exe").parent_path(),
               .others = {plan.cluster_file.parent_path()}};
  plan.program = plan.host.programs / "start_instance";
  for (const Role& role : plan.cluster.roles) {
    if (role.container.program.empty()) link_storages(role.storages, plan.host.folder);
  }
  const ExitReport end = supervise(plan);
  if (end.code == 0) {
    log::info(end.sentence);
  } else {
    const std::string& host = end.host.empty() ? log::host() : end.host;
    failure_report::write_of(0, host, {end.code, end.signal, end.sentence, {}, end.error_line});
    log::error(end.sentence);
  }
  return end.code;
}

}  // namespace

int main(int argc, char** argv) {
  return run_outside_ranks<RoleOptions>(argc, argv, [](const RoleOptions& options) {
    if (options.prints_folders) return print_folders(options);
    return with_exit_report([&] { return run_all(options); });
  });
}
