// What check_cluster tells people and programs.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "preflight/judgement.hpp"

namespace lockstep {

// A line for each node, of more than 64 those with the slowest ranks, and a line for each size of sums.
std::string cluster_table(const ClusterFacts& facts);
// "warning: ..." and the like, a line for each.
std::string findings_text(const std::vector<ClusterFinding>& findings);

// facts.hpp's, `findings` and `verdict`. Field by field in apps/files.md.
nlohmann::json cluster_json(const ClusterFacts& facts, const std::vector<ClusterFinding>& findings,
                            const ClusterVerdict& verdict);
// Call before the work. Throws as require_place_for_result().
void require_place_for_cluster(const std::filesystem::path& file);

}  // namespace lockstep
