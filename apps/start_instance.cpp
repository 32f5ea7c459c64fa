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
#include "slurm/roles/container.hpp"
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

// The command itself, or the command that runs it in a container. `programs` is the folder of this program.
std::vector<std::string> words_of(const Role& role, const std::filesystem::path& programs) {
  const bool is_contained = !role.container.program.empty();
  // With pyxis, this program is in the container already.
  if (role.container.program != "pyxis") {
    require_storages(role.storages, is_contained ? SeenFrom::container : SeenFrom::node, log::host());
  }
  if (!is_contained) return role.command;
  const JobEnvironment& job = this_job();
  return container_command(role, {.name = log::host(),
                                  .folder = std::filesystem::current_path(),
                                  .programs = programs,
                                  .others = {job.task.cluster_file.parent_path(), job.pmix_folder}});
}

[[noreturn]] void become(const Role& role, std::vector<std::string> words, const Environment& environment) {
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::unsetenv(rendezvous_variable);
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execvp(pointers[0], pointers.data());
  throw Error(Failure::usage, fmt::format("cannot start '{}' of role '{}': {}. Is the program on this node?",
                                          printable(words.front()), role.name, system_error_message(errno)));
}

int become_instance(const std::filesystem::path& programs) {
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
  const Role& role = arrived.cluster.roles[arrived.cluster.instances[arrived.place].role];
  environment.merge(container_environment(role, arrived.cluster.job.user));
  become(role, words_of(role, programs), environment);
}

}  // namespace

int main(int argc, char** argv) {
  // run_roles states the whole path. /proc/self/exe is the loader with pyxis.
  const std::filesystem::path programs = std::filesystem::path(*argv).parent_path();
  return run_outside_ranks<InstanceOptions>(argc, argv, [&programs](const InstanceOptions&) {
    return with_exit_report([&] { return become_instance(programs); });
  });
}
