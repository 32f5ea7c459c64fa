#include "slurm/submit/job_array.hpp"

#include <fmt/format.h>

#include <string_view>

#include "slurm/retry/decision.hpp"
#include "slurm/submit/job_ssh.hpp"

namespace lockstep {
namespace {

const YamlValue* find_in(const YamlValue* map, std::string_view field) {
  return map == nullptr ? nullptr : find_value(*map, field);
}

const YamlValue* gang_allocation(const YamlValue& root) {
  return find_in(find_value(root, "extras"), "gangAllocation");
}

// What in the commands stands for the place of other instances; empty: nothing.
std::string place_of_others(const JobFile& job, std::string_view commands) {
  const std::string& role = job.roles.front().name;
  for (const std::string& name : {fmt::format("PAI_TASK_ROLE_{}_HOST_LIST", role), "LOCKSTEP_HOSTS_" + role,
                                  "LOCKSTEP_ADDRESSES_" + role, std::string("LOCKSTEP_MASTER_ADDRESS")}) {
    if (commands.find(name) != commands.npos) return name;
  }
  const std::string address = instance_in(commands, fmt::format("PAI_HOST_IP_{}_", role));
  return address.empty() && job.has_ssh ? instance_in(commands, role + "-") : address;
}

}  // namespace

bool starts_independently(const JobReader& reader, const YamlValue& root) {
  const YamlValue* const gang = gang_allocation(root);
  if (gang == nullptr) return false;
  const std::string& value = reader.text(*gang, "gangAllocation");
  if (value != "true" && value != "false") reader.refuse(gang->line, "'gangAllocation' is neither true nor false");
  return value == "false";
}

std::optional<JobArray> read_job_array(JobReader& reader, const YamlValue& root, const JobFile& job) {
  const YamlValue* const throttle = find_in(find_in(find_value(root, "extras"), "lockstep"), "throttle");
  JobArray array;
  if (throttle != nullptr) array.throttle = reader.number(*throttle, "throttle", 1, max_instances);
  if (!starts_independently(reader, root)) {
    if (throttle != nullptr) {
      reader.refuse(throttle->line,
                    "'throttle' limits how many independent instances run at the same time, but these "
                    "start together. Add 'gangAllocation: false' to 'extras'");
    }
    return std::nullopt;
  }
  const int line = gang_allocation(root)->line;
  if (job.roles.size() > 1) {
    reader.refuse(line,
                  "'gangAllocation: false' makes each instance a job of its own, so roles would not find each "
                  "other. Submit a file for each role, or leave out 'gangAllocation'");
  }
  const Role& role = job.roles.front();
  if (!role.world.empty()) {
    reader.refuse(line, fmt::format("the role '{}' is in 'world', whose ranks start together, but 'gangAllocation' is "
                                    "false. Leave out one of them",
                                    role.name));
  }
  if (job.nodes > 0) {
    reader.refuse(line,
                  "'nodes' distributes instances that start together, but 'gangAllocation' is false. Leave out one "
                  "of them");
  }
  if (!job.output.empty()) {
    reader.refuse(line,
                  "'output' names one folder, but with 'gangAllocation: false' each instance is a training of its "
                  "own. Write --output runs/$PAI_TASK_INDEX in the commands instead");
  }
  for (const std::string& word : role.command) {
    const std::string place = role.instances > 1 ? place_of_others(job, word) : "";
    if (place.empty()) continue;
    reader.refuse(line, fmt::format("the commands use '{}', but with 'gangAllocation: false' each instance is a job of "
                                    "its own, which may run at another time. Leave out 'gangAllocation'. For ranks of "
                                    "one MPI job, add 'extras: {{lockstep: {{world: [{}]}}}}'",
                                    place, role.name));
  }
  if (job.job_retry_count != 0) {
    reader.warn(line,
                "'jobRetryCount' is ignored, because with 'gangAllocation: false' each instance is retried alone. "
                "Use 'taskRetryCount'");
  }
  if (job.has_ssh && role.instances > 1) {
    reader.warn(line,
                "'ssh' of the runtime plugins is ignored, because with 'gangAllocation: false' each instance is a "
                "job of its own");
  }
  const YamlValue* const fields = find_in(find_value(root, "taskRoles"), role.name);
  if (const YamlValue* const count = find_in(fields, "taskRetryCount")) {
    array.task_retry_count = reader.number(*count, "taskRetryCount", retry_every_end, max_retries);
  }
  return array;
}

}  // namespace lockstep
