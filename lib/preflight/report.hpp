// The reports of check_cluster, for people and for programs.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "preflight/judgement.hpp"

namespace lockstep {

// One line for each node and each all-reduce size. With more than 64 nodes, only those with the slowest ranks.
std::string cluster_table(const ClusterFacts& facts);
// One line for each finding, such as "warning: ...".
std::string findings_text(const std::vector<ClusterFinding>& findings);

// The facts as in facts.hpp, `findings` and `verdict`. apps/files.md describes the fields.
nlohmann::json cluster_json(const ClusterFacts& facts, const std::vector<ClusterFinding>& findings,
                            const ClusterDiagnosis& verdict);
// Call it before the measurements. Throws what require_place_for_result() throws.
void require_place_for_cluster(const std::filesystem::path& file);

}  // namespace lockstep
