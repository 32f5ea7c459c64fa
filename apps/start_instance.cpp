// The program that run_roles starts as each task. It waits until all instances of the job have joined, then execs the
// command of its role. It is not meant for manual use.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/text/printable.hpp"
#include "job/job_environment.hpp"
#include "launch/run_outside_ranks.hpp"
#include "runtime/failure/failure_report.hpp"
#include "slurm/roles/environment.hpp"
#include "slurm/roles/network_interfaces.hpp"
#include "slurm/roles/rendezvous.hpp"

using namespace lockstep;

namespace {

struct InstanceOptions {
  void declare(CLI::App& app) {
    app.description("Starts an instance of a role. Only for run_roles, which starts it as each task of a job.");
  }
};

[[noreturn]] void become(const Role& role, const Environment& environment) {
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::unsetenv(rendezvous_variable);
  std::vector<std::string> words = role.command;
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execvp(pointers[0], pointers.data());
  throw Error(Failure::usage, fmt::format("cannot start '{}' of role '{}': {}. Is the program on this node?",
                                          printable(role.command.front()), role.name, system_error_message(errno)));
}

int become_instance() {
  const JobEnvironment& job = this_job();
  const std::optional<RendezvousAddress> point = parse_rendezvous_address(job.task.arrival);
  if (!point || !job.rank) {
    throw Error(Failure::usage, "start_instance runs only as a task of run_roles. See slurm/roles.md.");
  }
  const std::int64_t step = job.slurm ? job.slurm->step.value_or(0) : 0;
  const JoinedTask arrived = join_rendezvous(
      *point, {.rank = job.rank->rank, .slurm_step = step, .host = log::host(), .interface = job.interface});
  Environment environment = environment_of(arrived.cluster, arrived.place);
  if (!job.interface.empty()) {
    environment.merge(interface_environment(job.interface, network_interfaces(), log::host()));
  }
  become(arrived.cluster.roles[arrived.cluster.instances[arrived.place].role], environment);
}

}  // namespace

int main(int argc, char** argv) {
  return run_outside_ranks<InstanceOptions>(argc, argv, [](const InstanceOptions&) {
    failure_report::set_rank(0, log::host());
    failure_report::set_exit_report_file(this_job().exit_report_file);
    try {
      return become_instance();
    } catch (const Error& error) {
      failure_report::write({error.exit_code(), 0, error.what()});
      throw;
    }
  });
}
