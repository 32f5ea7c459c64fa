#include "slurm/roles/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>

#include "base/error.hpp"
#include "base/text/number.hpp"
#include "base/text/printable.hpp"
#include "slurm/node_list.hpp"
#include "slurm/roles/cluster.hpp"

namespace lockstep {
namespace {

constexpr NumberRange<std::int64_t> counts{1, 1 << 20};

// Expands "2(x3),1" to 2, 2, 2, 1.
std::vector<std::int64_t> expand_counts(std::string_view text) {
  const auto refusal = [text] {
    return Error(Failure::bad_data,
                 fmt::format("'{}' is not a Slurm list of task counts, such as 2(x3),1.", printable(text)));
  };
  std::vector<std::int64_t> expanded;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    std::string_view one = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    std::int64_t nodes = 1;
    if (const std::size_t times = one.find("(x"); times != std::string_view::npos && one.ends_with(')')) {
      const auto parsed = parse_number(one.substr(times + 2, one.size() - times - 3), counts);
      if (!parsed) throw refusal();
      nodes = *parsed;
      one = one.substr(0, times);
    }
    const auto tasks = parse_number(one, counts);
    if (!tasks || expanded.size() + static_cast<std::size_t>(nodes) > max_nodes) throw refusal();
    expanded.insert(expanded.end(), static_cast<std::size_t>(nodes), *tasks);
  }
  return expanded;
}

// A step's tasks in one component.
struct ComponentTasks {
  std::size_t component = 0;
  std::vector<std::size_t> places;
};
std::vector<ComponentTasks> by_component(const RoleStep& step, const std::vector<InstanceSlot>& slots) {
  std::vector<ComponentTasks> parts;
  for (const std::size_t place : step.places) {
    const std::size_t component = slots.at(place).component;
    if (parts.empty() || parts.back().component != component) parts.push_back({component, {}});
    parts.back().places.push_back(place);
  }
  return parts;
}

// The ranks of an instance share its resources. Since Slurm 22.05, srun does not inherit the CPUs from the job.
void add_resources(const Role& role, std::int64_t cpus, std::int64_t max_tasks_of_a_node,
                   std::vector<std::string>& words) {
  const std::int64_t ranks = ranks_per_instance(role);
  words.push_back(fmt::format("--cpus-per-task={}", std::max<std::int64_t>(cpus / ranks, 1)));
  // Without --mem, a step would take all of the job's memory on its nodes, and other steps would wait.
  words.push_back(fmt::format("--mem={}", role.memory_mb * (max_tasks_of_a_node / ranks)));
  if (role.gpus == 0) return;
  words.push_back(fmt::format("--gpus-per-task={}", role.gpus / ranks));
  // In Slurm 24.11, srun inherits the binding of the job's tasks, which are whole instances.
  words.push_back(fmt::format("--gpu-bind=per_task:{}", role.gpus / ranks));
}

// The component of each role.
std::vector<std::size_t> components_of(const std::vector<Role>& roles, std::size_t components) {
  std::vector<std::size_t> groups = resource_groups(roles);
  if (components == 1) {
    std::ranges::fill(groups, 0);
    return groups;
  }
  if (components == roles.size()) std::iota(groups.begin(), groups.end(), 0);
  require(components == std::ranges::max(groups) + 1, Failure::usage,
          "the job has {} components, but {} roles. Each role runs on the component with its number. Submit the job "
          "with one component per role, or with one component.",
          components, roles.size());
  return groups;
}

// A component's part of a step gives all of its tasks the same resources.
void check_worlds(const std::vector<Role>& roles, const std::vector<std::size_t>& component_of) {
  const std::vector<std::size_t> groups = resource_groups(roles);
  for (std::size_t role = 0; role < roles.size(); ++role) {
    for (std::size_t first = 0; first < role; ++first) {
      const bool are_together = !roles[role].world.empty() && roles[first].world == roles[role].world &&
                                component_of[first] == component_of[role];
      require(!are_together || groups[first] == groups[role], Failure::usage,
              "roles '{}' and '{}' share the world '{}', but request different resources. As tasks of one step, they "
              "need the same. Request the same resources for both, or submit the job with one component per role.",
              roles[first].name, roles[role].name, roles[role].world);
    }
  }
}

void add_tasks(const ComponentTasks& part, const Role& role, const std::vector<InstanceSlot>& slots,
               std::vector<std::string>& words) {
  std::map<std::string, std::int64_t> tasks_of;
  std::string nodes;
  for (const std::size_t place : part.places) {
    const std::string& node = slots[place].node;
    ++tasks_of[node];
    nodes += (nodes.empty() ? "" : ",") + node;
  }
  std::int64_t most = 0;
  for (const auto& [node, tasks] : tasks_of) most = std::max(most, tasks);
  words.push_back(fmt::format("--ntasks={}", part.places.size()));
  words.push_back("--nodelist=" + nodes);
  add_resources(role, role.cpus > 0 ? role.cpus : slots[part.places.front()].cpus, most, words);
}

}  // namespace

std::vector<std::string> task_nodes(std::string_view node_list, std::string_view tasks_per_node) {
  const std::vector<std::string> nodes = expand_node_list(node_list);
  const std::vector<std::int64_t> counts_of = expand_counts(tasks_per_node);
  require(!nodes.empty() && nodes.size() == counts_of.size(), Failure::bad_data,
          "Slurm lists {} nodes, but the tasks of {} nodes (SLURM_JOB_NODELIST '{}', SLURM_TASKS_PER_NODE '{}').",
          nodes.size(), counts_of.size(), printable(node_list), printable(tasks_per_node));
  std::vector<std::string> tasks;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    // Tasks beyond max_instances are never used.
    const std::size_t room =
        static_cast<std::size_t>(max_instances) - std::min<std::size_t>(max_instances, tasks.size());
    tasks.insert(tasks.end(), std::min(room, static_cast<std::size_t>(counts_of[node])), nodes[node]);
  }
  return tasks;
}

std::vector<InstanceSlot> place_instances(const std::vector<Role>& roles,
                                          const std::vector<SlurmJob::Component>& components) {
  const std::vector<std::size_t> component_of = components_of(roles, components.size());
  check_worlds(roles, component_of);
  struct Tasks {
    std::vector<std::string> nodes;
    std::size_t next = 0;
  };
  std::vector<Tasks> tasks_of;
  for (const SlurmJob::Component& one : components) tasks_of.push_back({task_nodes(one.node_list, one.tasks_per_node)});
  std::vector<InstanceSlot> slots;
  for (std::size_t role = 0; role < roles.size(); ++role) {
    const std::size_t component = component_of[role];
    auto& [nodes, next] = tasks_of[component];
    const auto wanted = static_cast<std::size_t>(roles[role].instances);
    require(next + wanted <= nodes.size(), Failure::usage,
            "role '{}' has {} instances, but Slurm allocated only {} tasks for them. Submit the job with --ntasks={}.",
            roles[role].name, wanted, nodes.size() - next, next + wanted);
    for (std::size_t one = 0; one < wanted; ++one)
      slots.push_back({component, nodes[next++], components[component].cpus});
  }
  return slots;
}

std::vector<RoleStep> steps_of(const std::vector<Role>& roles) {
  std::vector<RoleStep> steps;
  const std::vector<ClusterInstance> instances = instances_of(roles);
  for (std::size_t place = 0; place < instances.size(); ++place) {
    const Role& role = roles[instances[place].role];
    if (role.world.empty()) {
      steps.push_back({fmt::format("{}-{}", role.name, instances[place].instance), {place}});
    } else if (const std::vector<std::size_t> world = world_of(roles, place); world.front() == place) {
      steps.push_back({role.world, {}});
      for (const std::size_t member : world) {
        const auto ranks = static_cast<std::size_t>(ranks_per_instance(roles[instances[member].role]));
        steps.back().places.insert(steps.back().places.end(), ranks, member);
      }
    }
  }
  return steps;
}

std::vector<std::string> srun_arguments(const RoleStep& step, const std::vector<Role>& roles,
                                        const std::vector<InstanceSlot>& slots, const std::string& mpi,
                                        const std::string& program, const ContainerHost& host) {
  const std::vector<ClusterInstance> instances = instances_of(roles);
  const bool is_heterogeneous =
      std::ranges::any_of(slots, [](const InstanceSlot& slot) { return slot.component != 0; });
  std::vector<std::string> words = {"srun", "--mpi=" + mpi, "--export=ALL", "--kill-on-bad-exit=1",
                                    "--job-name=" + step.name};
  bool is_first = true;
  for (const ComponentTasks& part : by_component(step, slots)) {
    if (!is_first) words.emplace_back(":");
    is_first = false;
    if (is_heterogeneous) words.push_back(fmt::format("--het-group={}", part.component));
    words.insert(words.end(), {"--exact", "--distribution=arbitrary"});
    if (step.places.size() > 1) words.emplace_back("--label");  // see task_output.hpp
    const Role& role = roles[instances.at(part.places.front()).role];
    add_tasks(part, role, slots, words);
    std::ranges::move(task_words(role, host, program), std::back_inserter(words));
  }
  return words;
}

}  // namespace lockstep
