// Minimum performance of a cluster: a file that a site writes once while the cluster is known to be healthy.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "preflight/facts.hpp"

namespace lockstep {

struct Floors {
  // Limits relative to the other ranks and nodes; these need no file.
  double compute_share = 0.8;  // of the median rank's samples per second
  double link_share = 0.5;     // of the fastest link's bandwidth
  double clock_seconds = 1;    // largest difference between a node's clock and the median clock
  // Absolute limits for each rank, each node, and all together. 0: no limit.
  double samples_per_second = 0;
  double write_bytes_per_second = 0;
  double read_bytes_per_second = 0;
  double bus_bytes_per_second = 0;  // of the largest all-reduce
  // The options of check_cluster with which the absolute limits were measured, by name without dashes; null: unknown.
  nlohmann::json settings = nullptr;
};

// Reads one JSON object with the fields' names as keys. A missing field keeps its default. Does not check the values of
// `settings`. Throws Error(usage) that names `file` for anything else.
Floors read_floors(const std::filesystem::path& file);
Floors parse_floors(std::string_view text, const std::string& file);

// 80 % of the values that the slowest rank and the slowest node reach.
Floors floors_below(const ClusterFacts& facts);
std::string floors_text(const Floors& floors);
// Call it before the measurements. Throws what require_place_for_result() throws.
void require_place_for_floors(const std::filesystem::path& file);

}  // namespace lockstep
