// The commands that plugins and prerequisites of a job file add to those of its roles.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "slurm/submit/job_fields.hpp"

namespace lockstep {

enum class FailurePolicy : std::uint8_t { fail, ignore };

// The commands of the plugin `cmd`, or of a prerequisite with this plugin. Points into the file's tree.
struct PluginCommands {
  std::vector<const YamlValue*> before;  // lists of commands, in order
  std::vector<const YamlValue*> after;   // likewise; they run if the role's own commands succeed
  FailurePolicy failure_policy = FailurePolicy::fail;
  std::set<std::string> roles;  // of a plugin: those that run the commands
  bool has_ssh = false;         // of the plugin ssh: instances reach each other
};

// Prerequisites by type and name. Points into the file's tree.
using Prerequisites = std::map<std::pair<std::string, std::string>, const YamlValue*>;

// These functions refuse as `reader` does, and warn about fields without effect.

// Reads the list `prerequisites`.
Prerequisites read_prerequisites(JobReader& reader, const YamlValue& list);

// Reads the list `extras.com.microsoft.pai.runtimeplugin`. `roles` is the map `taskRoles`.
std::vector<PluginCommands> read_plugins(JobReader& reader, const YamlValue& list, const YamlValue& roles);

// The commands of the prerequisites in the list `names`, in the order in which they start. Each comes once, after those
// that it requires.
std::vector<PluginCommands> prerequisite_commands(JobReader& reader, const Prerequisites& all, const YamlValue& names);

}  // namespace lockstep
