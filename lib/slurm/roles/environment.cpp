#include "slurm/roles/environment.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text/printable.hpp"

namespace lockstep {
namespace {

template <typename List, typename Words>
std::string joined(const List& list, Words words) {
  std::string text;
  for (const auto& one : list) text += (text.empty() ? "" : ",") + fmt::format("{}", words(one));
  return text;
}

std::string format_ports(const std::vector<int>& ports) {
  return joined(ports, [](int port) { return port; });
}

class EnvironmentMaker {
 public:
  EnvironmentMaker(const Cluster& cluster, std::size_t place)
      : cluster_(cluster), own_(cluster.instances.at(place)), role_(cluster.roles.at(own_.role)) {}

  Environment make() {
    set_ours();
    set_job();
    set_own();
    for (const Role& role : cluster_.roles) set_role(role);
    for (const ClusterInstance& one : cluster_.instances) set_instance(one);
    return std::move(environment_);
  }

 private:
  void set(const std::string& name, const std::string& value) {
    const auto [known, is_new] = environment_.emplace(name, value);
    require(is_new || known->second == value, Failure::usage,
            "the variable '{}' would have two values, '{}' and '{}', because of similar role names. Rename one of the "
            "roles.",
            name, printable(known->second), printable(value));
  }
  void set(const std::string& name, std::int64_t value) { set(name, fmt::format("{}", value)); }

  std::vector<ClusterInstance> instances_of_role(const Role& role) const {
    std::vector<ClusterInstance> found;
    for (const ClusterInstance& one : cluster_.instances) {
      if (cluster_.roles[one.role].name == role.name) found.push_back(one);
    }
    return found;
  }
  std::string role_names() const {
    return joined(cluster_.roles, [](const Role& role) { return role.name; });
  }

  void set_ours() {
    const ClusterInstance& master = cluster_.instances.front();
    set("LOCKSTEP_ROLE", role_.name);
    set("LOCKSTEP_INSTANCE", own_.instance);
    set("LOCKSTEP_ATTEMPT", cluster_.attempt);
    set("LOCKSTEP_ROLES", role_names());
    set("LOCKSTEP_MASTER_ADDRESS", master.address);
    set("LOCKSTEP_MASTER_PORT", master.ports.at(master_label).front());
    if (!cluster_.checkpoint.empty()) {
      set("LOCKSTEP_CHECKPOINT", seen_by_commands(role_.storages, cluster_.checkpoint).string());
    }
  }

  void set_job() {
    const Cluster::Job& job = cluster_.job;
    const std::string full_name = job.user + "~" + job.name;
    for (const char* name : {"PAI_JOB_NAME", "PAI_FRAMEWORK_NAME", "FC_FRAMEWORK_NAME"}) set(name, full_name);
    for (const char* name : {"PAI_USER_NAME", "PAI_USERNAME"}) set(name, job.user);
    set("PAI_VIRTUAL_CLUSTER", job.partition);
    set("PAI_WORK_DIR", job.folder);
    const auto roles = static_cast<std::int64_t>(cluster_.roles.size());
    std::vector<std::string> instances;
    for (const Role& role : cluster_.roles) {
      for (std::int64_t one = 0; one < all_instances(role); ++one) {
        instances.push_back(fmt::format("{}:{}", role.name, one));
      }
    }
    for (const char* name : {"PAI_TASK_ROLE_COUNT", "PAI_TASK_ROLES_NUM", "PAI_JOB_TASK_ROLE_COUNT"}) set(name, roles);
    for (const char* name : {"PAI_TASK_ROLE_LIST", "PAI_JOB_TASK_ROLE_LIST"}) set(name, role_names());
    for (const char* name : {"PAI_TASKS_NUM", "PAI_JOB_TASK_COUNT"}) set(name, std::ssize(instances));
    set("PAI_TASK_ROLE_INSTANCES", fmt::format("{}", fmt::join(instances, ",")));
  }

  void set_own() {
    for (const char* name : {"PAI_CURRENT_TASK_ROLE_NAME", "FC_TASKROLE_NAME"}) set(name, role_.name);
    for (const char* name : {"PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "PAI_TASK_INDEX", "FC_TASK_INDEX"}) {
      set(name, own_.instance);
    }
    const bool is_retried_alone = role_.array_instances > 0;
    set("FC_FRAMEWORK_ATTEMPT_ID", is_retried_alone ? 0 : cluster_.attempt);
    set("FC_TASK_ATTEMPT_ID", is_retried_alone ? cluster_.attempt : 0);
    for (const Storage& storage : role_.storages) set(storage_variable(storage.name), visible_path(storage));
    const auto shared = std::ranges::find(role_.storages, default_storage, &Storage::name);
    set("PAI_DEFAULT_FS_URI", "file://" + (shared == role_.storages.end() ? "/" : visible_path(*shared)));
    for (const char* name : {"PAI_CURRENT_CONTAINER_IP", "PAI_CONTAINER_HOST_IP"}) set(name, own_.address);
    const std::string http = format_ports(own_.ports.at(http_label));
    for (const char* name : {"PAI_CURRENT_CONTAINER_PORT", "PAI_CONTAINER_HOST_PORT"}) set(name, http);
    set("PAI_CONTAINER_SSH_PORT", format_ports(own_.ports.at(ssh_label)));
    std::string lists;
    for (const auto& [label, ports] : own_.ports) {
      lists += fmt::format("{}:{};", label, format_ports(ports));
      set(fmt::format("PAI_CONTAINER_HOST_{}_PORT_LIST", label), format_ports(ports));
    }
    set("PAI_CONTAINER_HOST_PORT_LIST", lists);
  }

  void set_role(const Role& role) {
    const std::vector<ClusterInstance> instances = instances_of_role(role);
    set("LOCKSTEP_INSTANCES_" + role.name, all_instances(role));
    set("LOCKSTEP_HOSTS_" + role.name, joined(instances, [](const ClusterInstance& one) { return one.host; }));
    const auto address = [](const ClusterInstance& one) { return one.address; };
    set("LOCKSTEP_ADDRESSES_" + role.name, joined(instances, address));
    set("PAI_TASK_ROLE_TASK_COUNT_" + role.name, all_instances(role));
    set("PAI_RESOURCE_" + role.name, fmt::format("{},{},{},0", role.gpus, role.cpus, role.memory_mb));
    set("PAI_MIN_FAILED_TASK_COUNT_" + role.name, role.min_failed_instances);
    set("PAI_MIN_SUCCEEDED_TASK_COUNT_" + role.name, role.min_succeeded_instances);
    set(fmt::format("PAI_TASK_ROLE_{}_HOST_LIST", role.name), joined(instances, [](const ClusterInstance& one) {
          return fmt::format("{}:{}", one.address, one.ports.at(http_label).front());
        }));
  }

  void set_instance(const ClusterInstance& one) {
    const std::string name = fmt::format("{}_{}", cluster_.roles[one.role].name, one.instance);
    set("PAI_HOST_IP_" + name, one.address);
    for (const auto& [label, ports] : one.ports) {
      set(fmt::format("LOCKSTEP_PORTS_{}_{}", name, label), format_ports(ports));
      set(fmt::format("PAI_PORT_LIST_{}_{}", name, label), format_ports(ports));
      set(fmt::format("PAI_{}_{}_PORT", name, label), format_ports(ports));
    }
  }

  const Cluster& cluster_;
  const ClusterInstance& own_;
  const Role& role_;
  Environment environment_;
};

}  // namespace

Environment environment_of(const Cluster& cluster, std::size_t place) {
  return EnvironmentMaker(cluster, place).make();
}

Environment interface_environment(const std::string& interface, const std::vector<std::string>& known,
                                  const std::string& host) {
  require(std::ranges::find(known, interface) != known.end(), Failure::usage,
          "{} has no network interface '{}' (LOCKSTEP_INTERFACE) for MPI and NCCL. Choose one of: {}.", host,
          printable(interface), joined(known, [](const std::string& name) { return printable(name); }));
  // NCCL treats a name as a prefix unless '=' precedes it.
  return {{"OMPI_MCA_btl_tcp_if_include", interface},
          {"OMPI_MCA_oob_tcp_if_include", interface},
          {"NCCL_SOCKET_IFNAME", "=" + interface},
          {"GLOO_SOCKET_IFNAME", interface}};
}

std::string exports_text(const Environment& environment) {
  std::string text;
  for (const auto& [name, value] : environment) text.append(name).append("=").append(value).push_back('\0');
  return text;
}

std::string environment_table(const Environment& environment) {
  std::size_t width = 0;
  for (const auto& [name, value] : environment) width = std::max(width, name.size());
  std::string text;
  for (const auto& [name, value] : environment) text += fmt::format("{:<{}}  {}\n", name, width, printable(value));
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace lockstep
