#include "slurm/submit/job_roles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <ranges>

#include "base/text/printable.hpp"
#include "slurm/retry/decision.hpp"
#include "slurm/submit/job_file.hpp"
#include "slurm/submit/job_storages.hpp"
#include "slurm/submit/shell_text.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t max_cpus = 100'000;
constexpr std::int64_t max_memory_mb = 1'000'000'000;
constexpr std::int64_t max_gpus = 1'000;
constexpr std::int64_t unset = 0;  // OpenPAI's value for "not set" in fields that start at 1
constexpr std::size_t max_bytes_of_commands = std::size_t{1} << 16;

// Stop signals go to all processes. The shell waits for the program that handles them. If another command follows, the
// shell then ends before that command, with the program's code, or with 75 if that is 0. A program may also stop by
// itself, with 75, or get its signal a moment before the shell does: ERR sees both.
//
// DEBUG is set only after a signal, because it slows loops down. The second trap of the signals is blank, because any
// command in it would run the DEBUG trap. The braces hide the ERR trap from `set -x`.
constexpr std::string_view stop_traps =
    R"shell(trap 'trap " " USR1 TERM
trap "lockstep_code=\$?; trap - DEBUG; exit \$((lockstep_code ? lockstep_code : 75))" DEBUG' USR1 TERM
trap '{ case $? in 75) false ;; 138 | 143) sleep 0.5; : ;; esac; } 2>/dev/null || exit 75' ERR
set -E
)shell";

// Precedes the commands of plugins for the event taskSucceeds. The role's `cd` and `set -x` do not concern them.
constexpr std::string_view only_if_succeeded = R"shell({ lockstep_code=$?; set +x; } 2>/dev/null
((lockstep_code == 0)) || exit "$lockstep_code"
cd -- "${PAI_WORK_DIR:-.}" || exit
)shell";

class RoleReader {
 public:
  RoleReader(JobReader& reader, const JobContext& context, const YamlEntry& entry)
      : reader_(reader), context_(context), entry_(entry), fields_(entry.value) {}

  Role read() {
    role_.name = entry_.key;
    if (!is_role_name(role_.name)) {
      reader_.refuse(entry_.line,
                     fmt::format("'{}' is not a valid role name. Use letters, digits and '_', with no digit first",
                                 printable(role_.name)));
    }
    reader_.check_fields(fields_, job_fields::task_role(), message());
    if (const YamlValue* const count = find_value(fields_, "instances")) {
      role_.instances = reader_.number(*count, "instances", 1, max_instances);
    }
    read_completion();
    if (const YamlValue* const options = find_value(fields_, "extraContainerOptions")) {
      reader_.check_fields(*options, job_fields::container_options(), "extraContainerOptions");
    }
    if (const YamlValue* const count = find_value(fields_, "taskRetryCount")) check_retries(*count);
    read_resources();
    if (context_.world.contains(role_.name)) join_world();
    read_commands();
    return role_;
  }

 private:
  std::string message() const { return fmt::format("the role '{}'", role_.name); }

  void check_retries(const YamlValue& count) {
    const std::int64_t retries = reader_.number(count, "taskRetryCount", retry_every_end, max_retries);
    if (retries == 0 || context_.retries_tasks) return;
    reader_.warn(count.line,
                 "'taskRetryCount' is ignored, because all instances of a job start and restart together. Use "
                 "'jobRetryCount', or 'gangAllocation: false' for independent instances");
  }

  void read_completion() {
    role_.min_succeeded_instances = role_.instances;
    const YamlValue* const completion = find_value(fields_, "completion");
    if (completion == nullptr) return;
    reader_.check_fields(*completion, job_fields::completion(), "completion");
    read_threshold(*completion, "minFailedInstances", role_.min_failed_instances);
    read_threshold(*completion, "minSucceededInstances", role_.min_succeeded_instances);
  }

  void read_threshold(const YamlValue& completion, std::string_view field, std::int64_t& threshold) const {
    const YamlValue* const value = find_value(completion, field);
    if (value == nullptr) return;
    const std::int64_t number = reader_.number(*value, field, -1, max_instances);
    if (number > role_.instances) {
      reader_.refuse(value->line,
                     fmt::format("'{}' is {}, but {} has {} instances", field, number, message(), role_.instances));
    }
    if (number != unset) threshold = number;
  }

  void read_resources() {
    const YamlValue* const resources = find_value(fields_, "resourcePerInstance");
    if (resources == nullptr)
      reader_.refuse(entry_.line, message() + " has no 'resourcePerInstance', which is required");
    reader_.check_fields(*resources, job_fields::resources(), "resourcePerInstance");
    const auto read = [&](std::string_view field, std::int64_t least, std::int64_t most, std::int64_t& target) {
      const YamlValue* const value = find_value(*resources, field);
      if (value != nullptr) target = reader_.number(*value, field, least, most);
    };
    read("cpu", 1, max_cpus, role_.cpus);
    read("memoryMB", 1, max_memory_mb, role_.memory_mb);
    read("gpu", 0, max_gpus, role_.gpus);
    const YamlValue* const ports = find_value(*resources, "ports");
    if (ports == nullptr) return;
    for (const YamlEntry& port : reader_.map(*ports, "ports")) {
      if (!is_role_name(port.key)) {
        reader_.refuse(port.line,
                       fmt::format("'{}' is not a valid port label. Use letters, digits and '_', with no digit first",
                                   printable(port.key)));
      }
      role_.ports[port.key] = reader_.number(port.value, "a number of ports", 1, max_ports);
    }
  }

  void join_world() {
    role_.world = "world";
    const std::int64_t ranks = ranks_per_instance(role_);
    if (ranks == 1) return;
    reader_.warn(entry_.line,
                 fmt::format("{} has {} instances with {} GPUs each, so it starts {} ranks of the world, one for "
                             "each GPU. PAI_ variables count instances",
                             message(), role_.instances, ranks, role_.instances * ranks));
  }

  void read_commands() {
    const YamlValue* const own = find_value(fields_, "commands");
    if (own == nullptr || reader_.list(*own, "commands").empty()) {
      reader_.refuse(entry_.line, message() + " has no 'commands'");
    }
    References references = context_.references;
    refer_to_prerequisites(references);
    const std::vector<PluginCommands> plugins = plugins_of_role();
    for (const PluginCommands& plugin : plugins) add_plugin(references, plugin, plugin.before);
    JobCommands commands(reader_, references);
    add_all(commands, deployed("preCommands"));
    add_all(commands, own);
    add_all(commands, deployed("postCommands"));
    commands.check_variables(own->line);
    script_ += commands.script();
    const bool has_after = std::ranges::any_of(plugins, [](const PluginCommands& one) { return !one.after.empty(); });
    if (has_after) script_ += only_if_succeeded;
    for (const PluginCommands& plugin : std::ranges::reverse_view(plugins)) {
      add_plugin(references, plugin, plugin.after);
    }
    if (script_.size() > max_bytes_of_commands) {
      reader_.refuse(own->line, fmt::format("the commands of {} are longer than {} bytes. Move them to a script",
                                            message(), max_bytes_of_commands));
    }
    role_.storages = storages_of_role(reader_, context_.site, context_.storages, role_, script_, references, own->line);
    hide_other_secrets();
    const std::vector<std::string> shell = {"bash", "-c", std::string(stop_traps) + script_, role_.name};
    role_.command.insert(role_.command.end(), shell.begin(), shell.end());
  }

  // The job's environment contains all secrets; this unsets those that the script does not use.
  void hide_other_secrets() {
    for (const auto& [reference, value] : context_.references.values) {
      if (!value.is_secret || names_variable(script_, value.variable)) continue;
      if (role_.command.empty()) role_.command = {"env"};
      role_.command.insert(role_.command.end(), {"-u", value.variable});
    }
  }

  void add_all(JobCommands& commands, const YamlValue* list) const {
    if (list == nullptr) return;
    for (const YamlValue& command : reader_.list(*list, "commands")) commands.add(command);
  }

  // In the order in which they start. They end in reverse order.
  std::vector<PluginCommands> plugins_of_role() const {
    std::vector<PluginCommands> plugins;
    if (const YamlValue* const names = find_value(fields_, "prerequisites")) {
      plugins = prerequisite_commands(reader_, context_.prerequisites, *names);
    }
    std::ranges::copy_if(context_.plugins, std::back_inserter(plugins),
                         [&](const PluginCommands& one) { return one.roles.contains(role_.name); });
    return plugins;
  }

  // As on OpenPAI, a plugin's commands run in a shell of their own.
  void add_plugin(const References& references, const PluginCommands& plugin,
                  const std::vector<const YamlValue*>& lists) {
    if (lists.empty()) return;
    JobCommands commands(reader_, references);
    for (const YamlValue* const list : lists) add_all(commands, list);
    commands.check_variables(lists.front()->line);
    const bool fails = plugin.failure_policy == FailurePolicy::fail;
    const std::string script = std::string(stop_traps) + (fails ? "set -e\n" : "") + commands.script();
    script_ += fmt::format("bash -c {} {} || {}\n", shell_word(script), role_.name, fails ? "exit" : ":");
  }

  // The commands of this kind that the deployment in use has for the role; null: none.
  const YamlValue* deployed(std::string_view kind) const {
    if (context_.deployment == nullptr) return nullptr;
    const YamlValue* const roles = find_value(*context_.deployment, "taskRoles");
    const YamlEntry* const role = roles == nullptr ? nullptr : roles->find(role_.name);
    return role == nullptr ? nullptr : find_value(role->value, kind);
  }

  // $script, $data and $output refer to the prerequisites that the role names.
  void refer_to_prerequisites(References& references) {
    for (const std::string kind : {"dockerImage", "script", "data", "output"}) {
      const YamlValue* const named = find_value(fields_, kind);
      if (named == nullptr) continue;
      const std::string& name = reader_.text(*named, kind);
      const auto found = context_.prerequisites.find({kind == "dockerImage" ? "dockerimage" : kind, name});
      if (found == context_.prerequisites.end()) {
        reader_.refuse(named->line, fmt::format("'{}' of {} names '{}', but no prerequisite of that type has this name",
                                                kind, message(), printable(name)));
      }
      if (kind == "dockerImage") {
        choose_container(*found->second, named->line);
      } else {
        add_fields(references, kind, *found->second);
      }
    }
  }

  void choose_container(const YamlValue& image, int line) {
    const SiteProfile& site = context_.site;
    if (site.container.empty()) return;
    const YamlValue* const name = find_value(image, "name");
    const YamlValue* const uri = find_value(image, "uri");
    for (const YamlValue* const key : {uri, name}) {
      const auto mapped = site.images.find(key == nullptr ? "" : key->text);
      if (mapped == site.images.end()) continue;
      role_.container = {site.container, mapped->second};
      return;
    }
    reader_.refuse(line, fmt::format("the Docker image of {} is unknown. Add image.{}=/path/of/the/image to the site "
                                     "profile, or remove 'container' there",
                                     message(), printable((uri == nullptr ? name : uri)->text)));
  }

  void add_fields(References& references, const std::string& kind, const YamlValue& prerequisite) {
    const auto add = [&](const std::string& field, const std::string& variable_end, const std::string& text) {
      const std::string variable = fmt::format("LOCKSTEP_{}_{}", kind, variable_end);
      references.values[fmt::format("${}.{}", kind, field)] = {text, variable, false};
      if (!is_plain_text(text)) script_ += fmt::format("export {}={}\n", variable, shell_word(text));
    };
    for (const YamlEntry& entry : prerequisite.entries) {
      if (entry.value.kind == YamlValue::Kind::text) add(entry.key, entry.key, entry.value.text);
      for (std::size_t place = 0; place < entry.value.items.size(); ++place) {
        const std::string& text = reader_.text(entry.value.items[place], entry.key);
        add(fmt::format("{}.{}", entry.key, place), fmt::format("{}_{}", entry.key, place), text);
      }
    }
  }

  JobReader& reader_;
  const JobContext& context_;
  const YamlEntry& entry_;
  const YamlValue& fields_;
  Role role_;
  std::string script_;
};

}  // namespace

Role read_role(JobReader& reader, const JobContext& context, const YamlEntry& entry) {
  return RoleReader(reader, context, entry).read();
}

}  // namespace lockstep
