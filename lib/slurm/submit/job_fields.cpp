#include "slurm/submit/job_fields.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/text/number.hpp"
#include "base/text/printable.hpp"

namespace lockstep {

namespace job_fields {
namespace {

using enum FieldSupport;

constexpr std::array job_table = std::to_array<JobField>({
    {"protocolVersion"},
    {"name"},
    {"type"},
    {"version", unused},
    {"contributor", unused},
    {"description", unused},
    {"prerequisites"},
    {"parameters"},
    {"secrets"},
    {"jobRetryCount"},
    {"taskRoles"},
    {"deployments"},
    {"defaults"},
    {"extras"},
});

constexpr std::array prerequisite_table = std::to_array<JobField>({
    {"protocolVersion", unused},
    {"name"},
    {"type"},
    {"version"},
    {"contributor"},
    {"description"},
    {"uri"},
    {"auth", warned, "Images come from the site profile, not from a registry"},
    {"plugin"},
    {"require"},
    {"failurePolicy"},
    {"callbacks"},
    {"preCommands"},
    {"postCommands"},
});

constexpr std::array task_role_table = std::to_array<JobField>({
    {"protocolVersion", unused},
    {"instances"},
    {"completion"},
    {"taskRetryCount"},
    {"dockerImage"},
    {"data"},
    {"output"},
    {"script"},
    {"extraContainerOptions"},
    {"resourcePerInstance"},
    {"commands"},
    {"prerequisites"},
});

constexpr std::array completion_table = std::to_array<JobField>({{"minFailedInstances"}, {"minSucceededInstances"}});

constexpr std::array container_options_table = std::to_array<JobField>({
    {"shmMB", warned, "The administrator of the node sets the size of /dev/shm"},
    {"infiniband", warned, "A job can use all networks of its nodes. Choose one in the site profile"},
});

constexpr std::array resources_table = std::to_array<JobField>({{"cpu"}, {"memoryMB"}, {"gpu"}, {"ports"}});

constexpr std::array deployment_table = std::to_array<JobField>({
    {"protocolVersion", unused},
    {"name"},
    {"version", unused},
    {"contributor", unused},
    {"description", unused},
    {"taskRoles"},
});
constexpr std::array deployed_role_table = std::to_array<JobField>({{"preCommands"}, {"postCommands"}});
constexpr std::array defaults_table = std::to_array<JobField>({{"virtualCluster"}, {"deployment"}});

constexpr std::array extras_table = std::to_array<JobField>({
    {"submitFrom", unused},
    {"gangAllocation"},
    {"hivedScheduler", warned, "Slurm schedules the job. Choose a partition or a QOS in the site profile"},
    {"jobStatusChangeNotification"},
    {"com.microsoft.pai.runtimeplugin"},
    {"storages"},
    {"lockstep"},
});

constexpr std::array lockstep_table = std::to_array<JobField>({{"world"}, {"output"}, {"nodes"}, {"throttle"}});
constexpr std::array plugin_table =
    std::to_array<JobField>({{"plugin"}, {"parameters"}, {"failurePolicy"}, {"taskroles"}});
constexpr std::array cmd_parameters_table = std::to_array<JobField>({{"callbacks"}, {"preCommands"}, {"postCommands"}});
constexpr std::array callback_table = std::to_array<JobField>({{"event"}, {"commands"}});

constexpr std::array storage_table = std::to_array<JobField>({{"name"}, {"mountPath"}});
constexpr std::array storage_plugin_table = std::to_array<JobField>({{"storageConfigNames"}});

constexpr std::array plugins_table = std::to_array<JobField>({
    {"cmd"},
    {"ssh"},
    {"tensorboard", warned,
     "Give train_cifar or train_imagenet --tensorboard FOLDER, and start TensorBoard with --logdir FOLDER yourself"},
    {"git", refused, "Lockstep clones no repository. Clone it in 'preCommands' of a deployment, or before you submit"},
    {"teamwise_storage"},
});

}  // namespace

std::span<const JobField> job() { return job_table; }
std::span<const JobField> prerequisite() { return prerequisite_table; }
std::span<const JobField> task_role() { return task_role_table; }
std::span<const JobField> completion() { return completion_table; }
std::span<const JobField> container_options() { return container_options_table; }
std::span<const JobField> resources() { return resources_table; }
std::span<const JobField> deployment() { return deployment_table; }
std::span<const JobField> deployed_role() { return deployed_role_table; }
std::span<const JobField> defaults() { return defaults_table; }
std::span<const JobField> extras() { return extras_table; }
std::span<const JobField> lockstep() { return lockstep_table; }
std::span<const JobField> plugin() { return plugin_table; }
std::span<const JobField> cmd_parameters() { return cmd_parameters_table; }
std::span<const JobField> callback() { return callback_table; }
std::span<const JobField> storage() { return storage_table; }
std::span<const JobField> storage_plugin() { return storage_plugin_table; }
std::span<const JobField> plugins() { return plugins_table; }

}  // namespace job_fields

std::string with_dots(std::string_view path) {
  std::string text;
  for (const char letter : path) {
    if (letter == '[') {
      text += '.';
    } else if (letter != ']') {
      text += letter;
    }
  }
  return text;
}

namespace {

std::string known_names(std::span<const JobField> fields) {
  std::string names;
  for (const JobField& field : fields) names.append(names.empty() ? "" : ", ").append(field.name);
  return names;
}

}  // namespace

std::string JobReader::place(int line) const {
  if (line >= 0) return yaml_place(name_, line);
  return fmt::format("'{}', {}: ", printable(name_), printable(options_.at(static_cast<std::size_t>(-line - 1))));
}

void JobReader::refuse(int line, std::string_view message) const {
  throw Error(Failure::usage, fmt::format("{}{}. Nothing was submitted.", place(line), message));
}

void JobReader::warn(int line, std::string_view message) {
  warnings_.push_back(fmt::format("{}{}.", place(line), message));
}

void JobReader::enforce(const JobField& field, int line, std::string_view owner) {
  if (field.support == FieldSupport::warned) {
    warn(line, fmt::format("'{}' of {} is ignored. {}", field.name, owner, field.reason));
  }
  if (field.support == FieldSupport::refused) {
    refuse(line, fmt::format("'{}' of {} is not supported under Slurm. {}", field.name, owner, field.reason));
  }
}

void JobReader::check_fields(const YamlValue& value, std::span<const JobField> fields, std::string_view owner) {
  for (const YamlEntry& entry : map(value, owner)) {
    const auto known = std::ranges::find(fields, entry.key, &JobField::name);
    if (known == fields.end()) {
      refuse(entry.line,
             fmt::format("unknown field '{}' of {}. Known: {}", printable(entry.key), owner, known_names(fields)));
    }
    if (entry.value.kind != YamlValue::Kind::nothing) enforce(*known, entry.line, owner);
  }
}

const std::string& JobReader::text(const YamlValue& value, std::string_view field) const {
  if (value.kind != YamlValue::Kind::text) refuse(value.line, fmt::format("{} is not a string", field));
  return value.text;
}

std::int64_t JobReader::number(const YamlValue& value, std::string_view field, std::int64_t least,
                               std::int64_t most) const {
  const NumberRange<std::int64_t> range{least, most};
  const std::string& message = text(value, field);
  const std::optional<std::int64_t> number = parse_number(message, range);
  if (!number)
    refuse(value.line, fmt::format("{}: {}", field, not_a_number_message<std::int64_t>(printable(message), range)));
  return *number;
}

const std::vector<YamlValue>& JobReader::list(const YamlValue& value, std::string_view field) const {
  if (value.kind != YamlValue::Kind::list) refuse(value.line, fmt::format("{} is not a list, such as [a, b]", field));
  return value.items;
}

const std::vector<YamlEntry>& JobReader::map(const YamlValue& value, std::string_view field) const {
  if (value.kind != YamlValue::Kind::map) refuse(value.line, fmt::format("{} is not a map", field));
  return value.entries;
}

}  // namespace lockstep
