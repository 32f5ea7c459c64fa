#include "job/job_environment.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/text/number.hpp"

namespace lockstep {
namespace {

using namespace std::string_view_literals;

class Reader {
 public:
  explicit Reader(const Variables& variables) : variables_(variables) {}

  bool is_set(const char* name) const { return variables_(name).has_value(); }
  std::string text(const char* name) const { return variables_(name).value_or(""); }
  std::optional<std::int64_t> number(const char* name, NumberRange<std::int64_t> range) const {
    return parse_number(text(name), range);
  }
  // An absolute path. The XDG specification requires that relative ones be ignored.
  std::filesystem::path folder(const char* name) const {
    const std::filesystem::path folder = text(name);
    return folder.is_absolute() ? folder : std::filesystem::path();
  }

 private:
  const Variables& variables_;
};

constexpr NumberRange<std::int64_t> counts{0, std::int64_t{1} << 40};
constexpr NumberRange<std::int64_t> seconds_since_1970{0, std::int64_t{1} << 53};
// Slurm uses IDs just below 2^32 for steps that are not srun steps (batch script, interactive shell, extern; slurm.h:
// SLURM_PENDING_STEP and below), and for jobs without an ID (NO_VAL).
constexpr NumberRange<std::int64_t> slurm_numbers{0, 0xfffffff0 - 1};
constexpr NumberRange<std::int64_t> rank_counts{1, std::int64_t{1} << 31};
constexpr NumberRange<std::int64_t> component_counts{1, 4096};

std::vector<SlurmJob::Component> components_in(const Reader& environment) {
  const std::optional<std::int64_t> parts = environment.number("SLURM_HET_SIZE", component_counts);
  const auto component = [&](const std::string& end) {
    return SlurmJob::Component{environment.text(("SLURM_JOB_NODELIST" + end).c_str()),
                               environment.text(("SLURM_TASKS_PER_NODE" + end).c_str()),
                               environment.number(("SLURM_CPUS_PER_TASK" + end).c_str(), rank_counts).value_or(1)};
  };
  if (!parts) return {component("")};
  std::vector<SlurmJob::Component> components;
  for (std::int64_t part = 0; part < *parts; ++part)
    components.push_back(component(fmt::format("_HET_GROUP_{}", part)));
  return components;
}

RoleTask role_task_in(const Reader& environment) {
  return {environment.text(rendezvous_variable), environment.text(cluster_variable), environment.text("LOCKSTEP_ROLE"),
          environment.number("LOCKSTEP_INSTANCE", counts)};
}

std::optional<SlurmJob> slurm_job_in(const Reader& environment) {
  const std::optional<std::int64_t> id = environment.number("SLURM_JOB_ID", slurm_numbers);
  if (!id) return std::nullopt;
  SlurmJob job;
  job.id = *id;
  job.name = environment.text("SLURM_JOB_NAME");
  job.user = environment.text("SLURM_JOB_USER");
  job.partition = environment.text("SLURM_JOB_PARTITION");
  job.components = components_in(environment);
  job.restarts = environment.number("SLURM_RESTART_COUNT", counts).value_or(0);
  job.step = environment.number("SLURM_STEP_ID", slurm_numbers);
  const std::optional<std::int64_t> array = environment.number("SLURM_ARRAY_JOB_ID", slurm_numbers);
  const std::optional<std::int64_t> task = environment.number("SLURM_ARRAY_TASK_ID", slurm_numbers);
  if (array && task) job.array_task = {*array, *task};
  job.nodes = environment.number("SLURM_JOB_NUM_NODES", rank_counts);
  job.node_list = environment.text("SLURM_JOB_NODELIST");
  job.ends_at = environment.number("SLURM_JOB_END_TIME", seconds_since_1970);
  return job;
}

Launcher launcher_in(const Reader& environment) {
  if (!environment.text("OMPI_COMM_WORLD_SIZE").empty()) return Launcher::mpirun;
  if (environment.number("SLURM_STEP_ID", slurm_numbers)) return Launcher::srun;
  if (!environment.text("PMIX_RANK").empty() || !environment.text("PMI_RANK").empty()) return Launcher::pmi;
  return Launcher::none;
}

// Open MPI 5 lacks this option and ORTE, so it sets neither variable.
std::optional<KillDelay> kill_delay_in(const Reader& environment, Launcher launcher) {
  if (launcher != Launcher::mpirun) return std::nullopt;
  constexpr KillDelay open_mpi_5{.seconds = 0.25, .has_option = false};
  if (environment.text("OMPI_MCA_orte_launch").empty()) return open_mpi_5;
  const auto stated = environment.number("OMPI_MCA_odls_base_sigkill_timeout", NumberRange<std::int64_t>{0, 1 << 20});
  return KillDelay{.seconds = static_cast<double>(stated.value_or(1)), .has_option = true};
}

// PMIx passes the rank in a variable, but the number of ranks only in a message.
std::optional<JobEnvironment::Rank> rank_in(const Reader& environment, Launcher launcher) {
  struct Names {
    const char* rank;
    const char* ranks;
  };
  constexpr Names by_mpirun{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"};
  constexpr Names by_srun{"SLURM_PROCID", "SLURM_NTASKS"};
  constexpr Names by_pmi{"PMI_RANK", "PMI_SIZE"};
  if (launcher == Launcher::none) return std::nullopt;
  const Names names = launcher == Launcher::mpirun ? by_mpirun : launcher == Launcher::srun ? by_srun : by_pmi;
  const std::optional<std::int64_t> ranks = environment.number(names.ranks, rank_counts);
  if (!ranks) return std::nullopt;
  const std::optional<std::int64_t> rank = environment.number(names.rank, {0, *ranks - 1});
  return rank ? std::optional(JobEnvironment::Rank{*rank, *ranks}) : std::nullopt;
}

// A step without GPUs inherits SLURM_JOB_GPUS from its job.
std::string granted_gpus_in(const Reader& environment) {
  if (!environment.number("SLURM_JOB_ID", slurm_numbers)) return "";
  const bool is_step = environment.number("SLURM_STEP_ID", slurm_numbers).has_value();
  constexpr std::string_view number_of_gpus = "SLURM_GPUS_ON_NODE";
  constexpr std::string_view gpus_of_job = "SLURM_JOB_GPUS";
  for (const std::string_view name : {"CUDA_VISIBLE_DEVICES"sv, "SLURM_STEP_GPUS"sv, number_of_gpus, gpus_of_job}) {
    const std::string value = environment.text(name.data());  // literals end with a zero byte
    const bool is_none =
        value.empty() || value == "NoDevFiles" || value.starts_with('-') || (name == number_of_gpus && value == "0");
    if (is_none || (is_step && name == gpus_of_job)) continue;
    return fmt::format("{}={}", name, value);
  }
  return "";
}

// mpirun and srun --mpi=pmix set the PMIX names, srun --mpi=pmi2 the PMI one. SLURM_PROCID is no evidence, because a
// batch shell has it too.
bool has_pmi(const Reader& environment) {
  constexpr std::array<const char*, 4> names = {"PMIX_RANK", "PMIX_NAMESPACE", "OMPI_COMM_WORLD_RANK", "PMI_RANK"};
  return std::ranges::any_of(names, [&](const char* name) { return environment.is_set(name); });
}

std::optional<std::string> variable(const char* name) {
  // careful-environment: the one place that reads it
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): the first call comes before threads
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace

std::string slurm_number(const SlurmJob& job) {
  return job.array_task ? fmt::format("{}_{}", job.array_task->array, job.array_task->task) : fmt::format("{}", job.id);
}

std::string_view launcher_name(Launcher launcher) {
  switch (launcher) {
    case Launcher::none:
      return "";
    case Launcher::mpirun:
      return "mpirun";
    case Launcher::srun:
      return "srun";
    case Launcher::pmi:
      return "a PMI launcher";
  }
  return "";
}

JobEnvironment read_job_environment(const Variables& variables) {
  const Reader environment(variables);
  JobEnvironment job;
  job.launcher = launcher_in(environment);
  job.has_pmi = has_pmi(environment);
  job.rank = rank_in(environment, job.launcher);
  job.kill_delay = kill_delay_in(environment, job.launcher);
  job.slurm = slurm_job_in(environment);
  job.task = role_task_in(environment);
  job.pmix_folder = environment.folder("PMIX_SERVER_TMPDIR");
  job.granted_gpus = granted_gpus_in(environment);
  job.visible_gpus = environment.text("CUDA_VISIBLE_DEVICES");
  job.interface = environment.text("LOCKSTEP_INTERFACE");
  job.exit_report_file = environment.text(exit_report_variable);
  constexpr NumberRange<double> start_timeouts{0, 1e6};
  const std::string stated = environment.text(start_timeout_variable);
  const auto start_timeout = parse_number(stated, start_timeouts);
  if (start_timeout) job.start_timeout_seconds = *start_timeout;
  if (!start_timeout && !stated.empty()) {
    job.mistake = fmt::format("{}: {}", start_timeout_variable, not_a_number_message(stated, start_timeouts));
  }
  const std::filesystem::path home = environment.folder("HOME");
  job.cache_folder = environment.folder("XDG_CACHE_HOME");
  if (job.cache_folder.empty() && !home.empty()) job.cache_folder = home / ".cache";
  return job;
}

const JobEnvironment& this_job() {
  static const JobEnvironment job = read_job_environment(variable);
  return job;
}

}  // namespace lockstep
