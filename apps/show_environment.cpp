// Prints the environment variables of a role's instance: which instance it is, where the others are, and its ports.
//
//   show_environment                      in a task that run_roles started: its own
//   show_environment cluster-17.0.json    of all instances
//   show_environment --exports            for slurm/environment.sh
#include <cstdio>

#include "base/error.hpp"
#include "base/log.hpp"
#include "job/job_environment.hpp"
#include "launch/number_option.hpp"
#include "launch/run_outside_ranks.hpp"
#include "slurm/roles/environment.hpp"
#include "slurm/roles/network_interfaces.hpp"

using namespace lockstep;

namespace {

struct ShowOptions {
  std::filesystem::path cluster = this_job().task.cluster_file;
  std::string role = this_job().task.role;
  std::int64_t instance = this_job().task.instance.value_or(0);
  bool exports = false;

  void declare(CLI::App& app) {
    app.description("Prints the environment variables of instances in a job with several roles.");
    app.add_option("CLUSTER", cluster,
                   "File cluster-JOB.ATTEMPT.json that run_roles wrote; without it: the file in LOCKSTEP_CLUSTER")
        ->type_name("FILE");
    CLI::Option* const role_option =
        app.add_option("--role", role, "Role whose instance to print; without it: all instances of all roles")
            ->type_name("NAME");
    CLI::Option* const instance_option =
        add_number(app, "--instance", instance, {0, max_instances - 1}, "With --role: index of the instance");
    if (role.empty()) instance_option->needs(role_option);  // a task knows its own role
    app.add_flag(
        "--exports", exports,
        "For scripts: print NAME=VALUE and a zero byte per variable of this task, with those of LOCKSTEP_INTERFACE");
    app.footer(
        "Examples:\n  show_environment\n  show_environment cluster-17.0.json\n"
        "  show_environment cluster-17.0.json --role trainer --instance 1");
  }
};

Environment environment_in(const ShowOptions& options) {
  if (options.cluster.empty() || options.role.empty()) return {};
  const Cluster cluster = read_cluster(options.cluster);
  const std::optional<std::size_t> place = place_of(cluster.roles, options.role, options.instance);
  if (!place) {
    throw Error(Failure::usage,
                fmt::format("'{}' has no instance {} of a role '{}'. Its roles: {}.", options.cluster.string(),
                            options.instance, options.role, describe_roles(cluster.roles)));
  }
  return environment_of(cluster, *place);
}

int print_exports(const ShowOptions& options) {
  const bool is_named = !options.cluster.empty() && options.cluster != this_job().task.cluster_file;
  require(!is_named || !options.role.empty(), Failure::usage,
          "--exports prints the variables of one instance of '{}', but no role is set. Add --role and --instance.",
          options.cluster.string());
  Environment environment = environment_in(options);
  if (const std::string& interface = this_job().interface; !interface.empty()) {
    environment.merge(interface_environment(interface, network_interfaces(), log::host()));
  }
  const std::string text = exports_text(environment);
  const bool is_written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  require(is_written, Failure::other,
          "cannot write the environment to standard output. Check the program that reads it.");
  return 0;
}

void print_all(const Cluster& cluster) {
  for (std::size_t place = 0; place < cluster.instances.size(); ++place) {
    const ClusterInstance& one = cluster.instances[place];
    log::plain(fmt::format("{}{} on {}\n{}", place == 0 ? "" : "\n",
                           instance_name(cluster.roles[one.role], one.instance), one.host,
                           environment_table(environment_of(cluster, place))));
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run_outside_ranks<ShowOptions>(argc, argv, [](const ShowOptions& options) {
    if (options.exports) return print_exports(options);
    require(!options.cluster.empty(), Failure::usage,
            "no cluster file is given, and LOCKSTEP_CLUSTER is not set because this is not a task of run_roles. Pass "
            "the file that run_roles wrote: cluster-JOB.ATTEMPT.json.");
    if (options.role.empty()) {
      print_all(read_cluster(options.cluster));
    } else {
      log::plain(environment_table(environment_in(options)));
    }
    return 0;
  });
}
