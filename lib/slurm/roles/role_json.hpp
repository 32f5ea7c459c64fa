// Roles as JSON, for roles.json and cluster.json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "slurm/roles/role.hpp"

namespace lockstep {

// Throws Error(usage) if `text` is not JSON or is nested deeper than `nesting_limit`. Errors thrown here and below do
// not name the file; the caller adds it.
nlohmann::json parse_shallow_json(const std::string& text, int nesting_limit);

// The JSON list of roles.
nlohmann::json roles_json(const std::vector<Role>& roles);
// The inverse of roles_json(): reads the field 'roles' of an object. Throws Error(usage) if it is missing or the roles
// fail check_roles().
std::vector<Role> roles_of(const nlohmann::json& content);

}  // namespace lockstep
