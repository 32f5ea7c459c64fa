// roles.json: the roles of a job, as whoever prepares a job hands them to run_roles.
//
//   {"format": 1,
//    "roles": [{"name": "ps", "command": ["server", "--quiet"], "ports": {"rpc": 1}, "min_failed_instances": -1},
//              {"name": "worker", "instances": 4, "command": ["train_cifar", "--data", "data/cifar 10"],
//               "world": "training", "cpus": 4, "memory_mb": 0, "gpus": 0}]}
//
// Each role needs a name and a command; the rest is as in role.hpp if it is not stated. A field of another name is
// refused.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "slurm/roles/role.hpp"

namespace lockstep {

// What read_roles() reads. The roles have passed check_roles(). Bytes that are not UTF-8 are replaced: check words that
// come from people before.
std::string roles_text(const std::vector<Role>& roles);

// Checked roles. Throws Error(usage) that names the file and the field: people write such files, and their programs.
std::vector<Role> read_roles(const std::filesystem::path& file);
// The same of `text`, which was found under `name`.
std::vector<Role> parse_roles(const std::string& text, const std::string& name);

}  // namespace lockstep
