#include "slurm/submit/job_nodes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

// The changes that let all roles share nodes: " --set taskRoles.ps.resourcePerInstance.cpu=8 ...".
std::string equal_resources_options(const std::vector<Role>& roles) {
  std::string options;
  for (const auto& [field, value] :
       {std::pair("cpu", &Role::cpus), {"memoryMB", &Role::memory_mb}, {"gpu", &Role::gpus}}) {
    const std::int64_t most = std::ranges::max(roles, {}, value).*value;
    for (const Role& role : roles) {
      if (role.*value == most) continue;
      options += fmt::format(" --set taskRoles.{}.resourcePerInstance.{}={}", role.name, field, most);
    }
  }
  return options;
}

}  // namespace

void check_nodes(JobReader& reader, const JobFile& job, const YamlValue* nodes, int line) {
  std::int64_t instances = 0;
  for (const Role& role : job.roles) instances += role.instances;
  if (nodes != nullptr && instances % job.nodes != 0) {
    reader.refuse(nodes->line, fmt::format("'nodes' is {}, but the job has {} instances. Each node must get the same "
                                           "number of instances",
                                           job.nodes, instances));
  }
  const std::size_t groups = std::ranges::max(resource_groups(job.roles)) + 1;
  if (groups == 1) return;
  const std::string options = equal_resources_options(job.roles);
  if (nodes != nullptr) {
    reader.refuse(nodes->line,
                  fmt::format("'nodes' distributes all instances equally, but roles that request different "
                              "resources never share a node. Leave out 'nodes', or add{}",
                              options));
  }
  reader.warn(line,
              fmt::format("the roles request different resources, so the job is a heterogeneous one with {0} "
                          "components, and waits until {0} nodes are free at once. On a smaller cluster, it waits "
                          "for ever. To let the roles share nodes, add{1}",
                          groups, options));
}

}  // namespace lockstep
