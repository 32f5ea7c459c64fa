// Roles as JSON, for the files that hold them: roles.json and cluster.json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "slurm/roles/role.hpp"

namespace lockstep {

// Throws Error(usage) where `text` is no JSON or deeper than `nesting_limit`. What is thrown here and below says what
// is wrong and not with which file: that is added by who knows it.
nlohmann::json parse_shallow_json(const std::string& text, int nesting_limit);

// The list of roles.
nlohmann::json roles_json(const std::vector<Role>& roles);
// Of an object, what roles_json() gave its field 'roles'. Throws Error(usage) where that is not there, or the roles do
// not pass check_roles().
std::vector<Role> roles_of(const nlohmann::json& content);

}  // namespace lockstep
