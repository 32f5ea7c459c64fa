#include "slurm/submit/job_plugins.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "base/text/printable.hpp"
#include "slurm/submit/job_ssh.hpp"

namespace lockstep {
namespace {

constexpr std::string_view full_cmd_name = "com.microsoft.pai.runtimeplugin.cmd";

FailurePolicy read_failure_policy(const JobReader& reader, const YamlValue& fields) {
  const YamlValue* const policy = find_value(fields, "failurePolicy");
  if (policy == nullptr) return FailurePolicy::fail;
  const std::string& name = reader.text(*policy, "failurePolicy");
  if (name == "fail") return FailurePolicy::fail;
  if (name == "ignore") return FailurePolicy::ignore;
  reader.refuse(policy->line, fmt::format("unknown failurePolicy '{}'. Known: fail, ignore", printable(name)));
}

void read_callback(JobReader& reader, const YamlValue& callback, PluginCommands& plugin) {
  reader.check_fields(callback, job_fields::callback(), "a callback");
  const YamlValue* const event = find_value(callback, "event");
  const YamlValue* const commands = find_value(callback, "commands");
  if (event == nullptr || commands == nullptr) {
    reader.refuse(callback.line, "a callback has no 'event' or no 'commands'");
  }
  const std::string& name = reader.text(*event, "event");
  if (name == "taskStarts") {
    plugin.before.push_back(commands);
  } else if (name == "taskSucceeds") {
    plugin.after.push_back(commands);
  } else {
    reader.refuse(event->line, fmt::format("unknown event '{}'. Known: taskStarts, taskSucceeds", printable(name)));
  }
}

// `fields` are the parameters of the plugin cmd, or a prerequisite.
void read_cmd(JobReader& reader, const YamlValue& fields, PluginCommands& plugin) {
  if (const YamlValue* const callbacks = find_value(fields, "callbacks")) {
    for (const YamlValue& callback : reader.list(*callbacks, "callbacks")) read_callback(reader, callback, plugin);
  }
  if (const YamlValue* const commands = find_value(fields, "preCommands")) plugin.before.push_back(commands);
  if (const YamlValue* const commands = find_value(fields, "postCommands")) plugin.after.push_back(commands);
}

std::set<std::string> read_plugin_roles(const JobReader& reader, const YamlValue& plugin, const YamlValue& roles) {
  std::set<std::string> names;
  const YamlValue* const chosen = find_value(plugin, "taskroles");
  if (chosen == nullptr) {
    for (const YamlEntry& role : reader.map(roles, "taskRoles")) names.insert(role.key);
    return names;
  }
  for (const YamlValue& role : reader.list(*chosen, "taskroles")) {
    const std::string& name = reader.text(role, "a role of a plugin");
    if (roles.find(name) == nullptr) {
      reader.refuse(role.line,
                    fmt::format("a plugin is for the role '{}', which the job does not have", printable(name)));
    }
    names.insert(name);
  }
  return names;
}

PluginCommands read_plugin(JobReader& reader, const YamlValue& plugin, const YamlValue& roles) {
  reader.check_fields(plugin, job_fields::plugin(), "a plugin");
  const YamlValue* const named = find_value(plugin, "plugin");
  if (named == nullptr) reader.refuse(plugin.line, "a plugin has no field 'plugin' with its name");
  const std::string& name = reader.text(*named, "plugin");
  const auto known = std::ranges::find(job_fields::plugins(), name, &JobField::name);
  if (known == job_fields::plugins().end()) {
    reader.refuse(named->line,
                  fmt::format("unknown plugin '{}'. Known: cmd, ssh, tensorboard, teamwise_storage", printable(name)));
  }
  reader.enforce(*known, named->line, "the runtime plugins");
  PluginCommands commands;
  commands.failure_policy = read_failure_policy(reader, plugin);
  commands.roles = read_plugin_roles(reader, plugin, roles);
  const YamlValue* const parameters = find_value(plugin, "parameters");
  if (name == "ssh" && parameters != nullptr) commands.has_ssh = read_ssh_plugin(reader, *parameters);
  if (name != "cmd" || parameters == nullptr) return commands;
  reader.check_fields(*parameters, job_fields::cmd_parameters(), "the plugin cmd");
  read_cmd(reader, *parameters, commands);
  return commands;
}

void read_prerequisite_plugin(JobReader& reader, const YamlValue& one) {
  const YamlValue* const named = find_value(one, "plugin");
  PluginCommands commands;
  read_cmd(reader, one, commands);
  read_failure_policy(reader, one);
  if (named == nullptr) {
    if (commands.before.empty() && commands.after.empty()) return;
    reader.refuse(one.line, fmt::format("a prerequisite has commands, but no plugin that runs them. Add 'plugin: {}'",
                                        full_cmd_name));
  }
  const std::string& name = reader.text(*named, "plugin");
  if (name == "cmd" || name == full_cmd_name) return;
  reader.refuse(named->line,
                fmt::format("unknown plugin '{}' of a prerequisite. Known: {}", printable(name), full_cmd_name));
}

void read_prerequisite(JobReader& reader, const YamlValue& one, Prerequisites& all) {
  reader.check_fields(one, job_fields::prerequisite(), "a prerequisite");
  const YamlValue* const name = find_value(one, "name");
  const YamlValue* const type = find_value(one, "type");
  if (name == nullptr || type == nullptr) reader.refuse(one.line, "a prerequisite has no 'name' or no 'type'");
  const std::string& kind = reader.text(*type, "type");
  const bool is_known = kind == "dockerimage" || kind == "script" || kind == "data" || kind == "output";
  if (!is_known) {
    reader.refuse(type->line, fmt::format("unknown type '{}' of a prerequisite. Known: dockerimage, script, data, "
                                          "output",
                                          printable(kind)));
  }
  const std::string& own_name = reader.text(*name, "name");
  if (!all.emplace(std::pair(kind, own_name), &one).second) {
    reader.refuse(name->line,
                  fmt::format("two prerequisites of type {} have the name '{}'", kind, printable(own_name)));
  }
  read_prerequisite_plugin(reader, one);
}

// A depth-first search through `require`.
class PrerequisiteOrder {
 public:
  PrerequisiteOrder(const JobReader& reader, const Prerequisites& all) : reader_(reader), all_(all) {}

  void add(const YamlValue& named) {
    const YamlValue& one = find(named);
    if (std::ranges::find(order_, &one) != order_.end()) return;
    const std::ptrdiff_t place = std::ranges::find(open_, &one) - open_.begin();
    const bool is_open = place < std::ssize(open_);
    open_.push_back(&one);
    if (is_open) refuse_circle(place, named.line);
    if (const YamlValue* const required = find_value(one, "require")) {
      for (const YamlValue& other : reader_.list(*required, "require")) add(other);
    }
    open_.pop_back();
    order_.push_back(&one);
  }

  const std::vector<const YamlValue*>& order() const { return order_; }

 private:
  const YamlValue& find(const YamlValue& named) const {
    const std::string& name = reader_.text(named, "the name of a prerequisite");
    const auto has_name = [&](const auto& entry) { return entry.first.second == name; };
    const auto found = std::ranges::find_if(all_, has_name);
    if (found == all_.end()) {
      reader_.refuse(named.line, fmt::format("no prerequisite has the name '{}'", printable(name)));
    }
    if (std::ranges::count_if(all_, has_name) > 1) {
      reader_.refuse(named.line, fmt::format("several prerequisites have the name '{}'. Rename all but one of them",
                                             printable(name)));
    }
    return *found->second;
  }

  [[noreturn]] void refuse_circle(std::ptrdiff_t begin, int line) const {
    std::vector<std::string> names;
    for (auto one = open_.begin() + begin; one != open_.end(); ++one) {
      names.push_back(fmt::format("'{}'", printable(find_value(**one, "name")->text)));
    }
    reader_.refuse(
        line, fmt::format("these prerequisites require each other: {}. Remove one 'require'", fmt::join(names, ", ")));
  }

  const JobReader& reader_;
  const Prerequisites& all_;
  std::vector<const YamlValue*> open_;  // each requires the next
  std::vector<const YamlValue*> order_;
};

}  // namespace

Prerequisites read_prerequisites(JobReader& reader, const YamlValue& list) {
  Prerequisites all;
  for (const YamlValue& one : reader.list(list, "prerequisites")) read_prerequisite(reader, one, all);
  return all;
}

std::vector<PluginCommands> read_plugins(JobReader& reader, const YamlValue& list, const YamlValue& roles) {
  std::vector<PluginCommands> plugins;
  for (const YamlValue& plugin : reader.list(list, "com.microsoft.pai.runtimeplugin")) {
    plugins.push_back(read_plugin(reader, plugin, roles));
  }
  return plugins;
}

std::vector<PluginCommands> prerequisite_commands(JobReader& reader, const Prerequisites& all, const YamlValue& names) {
  PrerequisiteOrder order(reader, all);
  for (const YamlValue& name : reader.list(names, "prerequisites of a role")) order.add(name);
  std::vector<PluginCommands> commands;
  for (const YamlValue* const one : order.order()) {
    if (find_value(*one, "plugin") == nullptr) continue;
    PluginCommands& own = commands.emplace_back();
    own.failure_policy = read_failure_policy(reader, *one);
    read_cmd(reader, *one, own);
  }
  return commands;
}

}  // namespace lockstep
