// roles.json: the roles of a job, as input of run_roles.
//
//   {"format": 1,
//    "roles": [{"name": "ps", "command": ["server", "--quiet"], "ports": {"rpc": 1}, "min_failed_instances": -1},
//              {"name": "worker", "instances": 4, "command": ["train_cifar", "--data", "data/cifar 10"],
//               "world": "training", "cpus": 4, "memory_mb": 0, "gpus": 0}]}
//
// Each role needs a name and a command. Other fields default to the values in role.hpp. Unknown fields are refused.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "slurm/roles/role.hpp"

namespace lockstep {

// The inverse of read_roles(). The roles have passed check_roles(). Replaces bytes that are not UTF-8: check user input
// before the call.
std::string roles_text(const std::vector<Role>& roles);

// Returns checked roles. Throws Error(usage) that names the file and the field, because users write these files.
std::vector<Role> read_roles(const std::filesystem::path& file);
// Does the same for `text`, found under `name`.
std::vector<Role> parse_roles(const std::string& text, const std::string& name);

}  // namespace lockstep
