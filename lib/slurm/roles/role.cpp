#include "slurm/roles/role.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <set>

#include "base/error.hpp"
#include "base/text/counted.hpp"
#include "base/text/printable.hpp"
#include "slurm/roles/container.hpp"

namespace lockstep {
namespace {

constexpr std::size_t max_name_bytes = 64;
constexpr std::size_t max_word_bytes = 128 * 1024 - 1;  // of one argument: the kernel's MAX_ARG_STRLEN
constexpr std::size_t max_command_bytes = 1 << 20;
constexpr std::int64_t max_cpus = 1 << 20;
constexpr std::int64_t max_memory_mb = std::int64_t{1} << 40;

class RoleCheck {
 public:
  explicit RoleCheck(const Role& role) : role_(role) {
    require(
        is_role_name(role.name), Failure::usage,
        "'{0}' is not a valid role name, because it becomes part of variable names. Use at most {1} letters, digits "
        "and '_', with no digit first.",
        printable(role.name), max_name_bytes);
  }

  void run() const {
    check_range("instances", role_.instances, 1, max_instances);
    check_range("cpus", role_.cpus, 0, max_cpus);
    check_range("memory_mb", role_.memory_mb, 0, max_memory_mb);
    check_range("gpus", role_.gpus, 0, max_cpus);
    if (role_.array_instances != 0 || role_.first_instance != 0) check_array();
    check_threshold("min_failed_instances", role_.min_failed_instances);
    check_threshold("min_succeeded_instances", role_.min_succeeded_instances);
    if (!role_.world.empty() && !is_role_name(role_.world)) {
      refuse(fmt::format("has the world '{}', which is not a valid name. Use the rules for role names",
                         printable(role_.world)));
    }
    check_command();
    check_ports();
    check_container();
    check_storages();
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(Failure::usage, fmt::format("role '{}' {}.", role_.name, what));
  }

  void check_range(const char* name, std::int64_t value, std::int64_t least, std::int64_t most) const {
    if (value < least || value > most)
      refuse(fmt::format("has the value {1} for '{0}'. Use {2} to {3}", name, value, least, most));
  }

  void check_array() const {
    check_range("array_instances", role_.array_instances, 1, max_instances);
    check_range("first_instance", role_.first_instance, 0, role_.array_instances - 1);
    check_range("instances", role_.instances, 1, 1);
  }

  void check_threshold(const char* name, std::int64_t value) const {
    if (value == never) return;
    if (value >= 1 && value <= all_instances(role_)) return;
    refuse(fmt::format(
        "has the value {1} for '{0}', which it cannot reach. Use 1 to {2} (its instances), or {3} for never", name,
        value, all_instances(role_), never));
  }

  void check_command() const {
    if (role_.command.empty() || role_.command.front().empty()) refuse("has no 'command'. Add the program to run");
    std::size_t bytes = 0;
    for (const std::string& word : role_.command) {
      if (word.find('\0') != std::string::npos) refuse("has a zero byte in its 'command'. Remove it");
      if (word.size() > max_word_bytes) refuse(fmt::format("has an argument longer than {} bytes", max_word_bytes));
      bytes += word.size() + 1;
    }
    if (bytes > max_command_bytes) refuse(fmt::format("has a command longer than {} bytes", max_command_bytes));
  }

  void check_ports() const {
    std::int64_t ports = 0;
    for (const auto& [label, count] : role_.ports) {
      if (!is_role_name(label)) {
        refuse(fmt::format("has the port label '{}', which is not a valid name. Use the rules for role names",
                           printable(label)));
      }
      check_range(("ports of label " + label).c_str(), count, 1, max_ports);
      ports += count;
    }
    check_range("ports", ports, 0, max_ports);
  }

  void check_path(const std::string& path) const {
    if (is_mountable(path)) return;
    refuse(
        fmt::format("has the path '{}', which is not absolute, or has ',', ':', a quote, a backslash or a control "
                    "character",
                    printable(path)));
  }

  void check_container() const {
    const Container& container = role_.container;
    if (container.program.empty() && container.image.empty()) return;
    if (std::ranges::find(container_programs, container.program) == container_programs.end()) {
      refuse(fmt::format("has the container program '{}', which is unknown. Known: {}", printable(container.program),
                         fmt::join(container_programs, ", ")));
    }
    check_path(container.image);
  }

  void check_storages() const {
    std::set<std::string> variables;
    for (const Storage& storage : role_.storages) {
      if (!is_storage_name(storage.name)) {
        refuse(fmt::format("has the storage '{}', which is not a valid name. Use letters, digits, '_', '-' and '.'",
                           printable(storage.name)));
      }
      if (!variables.insert(storage_variable(storage.name)).second) {
        refuse(fmt::format("has two storages with the variable {}", storage_variable(storage.name)));
      }
      check_path(storage.path);
      if (!storage.mount.empty()) check_path(storage.mount);
    }
  }

  const Role& role_;
};

bool requests_same(const Role& one, const Role& other) {
  return one.cpus == other.cpus && one.memory_mb == other.memory_mb && one.gpus == other.gpus;
}

// srun numbers the ranks of a step component by component, and roles with the same resources may share a component.
// `members`: the roles of the world before this one, at least one.
void check_in_world(const Role& role, const std::vector<const Role*>& members) {
  const auto same = std::ranges::find_if(members, [&](const Role* other) { return requests_same(*other, role); });
  if (same != members.end() && !requests_same(*members.back(), role)) {
    throw Error(
        Failure::usage,
        fmt::format(
            "role '{}' of the world '{}' requests the resources of '{}', but '{}' between them requests others. Slurm "
            "numbers ranks with the same resources one after the other. Put '{}' and '{}' next to each other.",
            role.name, role.world, (*same)->name, members.back()->name, (*same)->name, role.name));
  }
  require(role.container == members.front()->container, Failure::usage,
          "roles '{}' and '{}' share the world '{}', but run in different containers. As tasks of one step, they need "
          "the same. Use the same image for both.",
          members.front()->name, role.name, role.world);
}

void check_world_order(const std::vector<Role>& roles, const std::string& world) {
  std::vector<const Role*> members;
  for (const Role& role : roles) {
    if (role.world != world) continue;
    if (!members.empty()) check_in_world(role, members);
    members.push_back(&role);
  }
}

}  // namespace

std::int64_t ranks_per_instance(const Role& role) {
  return role.world.empty() ? 1 : std::max<std::int64_t>(role.gpus, 1);
}

std::vector<std::size_t> resource_groups(const std::vector<Role>& roles) {
  std::vector<std::size_t> groups;
  std::size_t next = 0;
  for (std::size_t index = 0; index < roles.size(); ++index) {
    const auto first =
        std::ranges::find_if(roles, [&](const Role& other) { return requests_same(roles[index], other); });
    const auto earlier = static_cast<std::size_t>(first - roles.begin());
    groups.push_back(earlier < index ? groups[earlier] : next++);
  }
  return groups;
}

bool is_role_name(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && name.size() <= max_name_bytes && is_letter(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return is_letter(c) || is_digit(c); });
}

void check_roles(const std::vector<Role>& roles) {
  require(!roles.empty() && roles.size() <= max_roles, Failure::usage,
          "a job needs 1 to {} roles, but this job has {}.", max_roles, roles.size());
  std::set<std::string_view> names;
  std::int64_t instances = 0;
  std::int64_t ranks = 0;
  for (const Role& role : roles) {
    RoleCheck(role).run();
    require(names.insert(role.name).second, Failure::usage, "two roles have the name '{}'. Rename one of them.",
            role.name);
    instances += role.instances;
    ranks += role.instances * ranks_per_instance(role);
  }
  require(instances <= max_instances, Failure::usage, "the roles have {} instances in total. Use at most {}.",
          instances, max_instances);
  require(ranks <= max_instances, Failure::usage,
          "the roles have {} ranks in total, one for each GPU of an instance in a world. Use at most {}.", ranks,
          max_instances);
  for (const Role& role : roles) {
    if (!role.world.empty()) check_world_order(roles, role.world);
  }
}

std::vector<Role> role_of_array_task(std::vector<Role> roles, std::int64_t task) {
  require(roles.size() == 1 && roles.front().world.empty(), Failure::usage,
          "a task of a job array runs an instance of one role without a world (--array-task), but the file has {}. "
          "Submit each role as an array of its own.",
          roles.size() == 1 ? "a role with a world" : counted(std::ssize(roles), "role"));
  Role& role = roles.front();
  require(task < role.instances, Failure::usage,
          "role '{}' has {} instances, so task {} of the job array (--array-task) has nothing to run. Submit the job "
          "with --array=0-{}.",
          role.name, role.instances, task, role.instances - 1);
  role.array_instances = role.instances;
  role.first_instance = task;
  role.instances = 1;
  return roles;
}

std::string instance_name(const Role& role, std::int64_t instance) {
  return fmt::format("{}[{}]", role.name, instance);
}

std::string describe_roles(const std::vector<Role>& roles) {
  std::string message;
  for (const Role& role : roles) {
    message += fmt::format("{}{}[{}{}]", message.empty() ? "" : ", ", role.name, role.first_instance,
                           role.instances > 1 ? fmt::format("-{}", role.instances - 1) : "");
  }
  return message;
}

}  // namespace lockstep
