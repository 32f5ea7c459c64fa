// What a cluster must reach, at least: a file that a site writes once, on a day when all is well.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "preflight/facts.hpp"

namespace lockstep {

struct Floors {
  // Of the others, which need no file.
  double compute_share = 0.8;  // of the samples a second of the rank in the middle
  double link_share = 0.5;     // of the fastest link's bytes a second
  double clock_seconds = 1;    // that a node's clock may differ from the clock in the middle
  // Of each rank, each node, and all together; 0: whatever it is.
  double samples_per_second = 0;
  double write_bytes_per_second = 0;
  double read_bytes_per_second = 0;
  double bus_bytes_per_second = 0;  // of the largest sum
};

// One JSON object, its names those of the fields; one that is missing keeps its default. Throws Error(usage) for
// anything else, naming `file`.
Floors read_floors(const std::filesystem::path& file);
Floors parse_floors(std::string_view text, const std::string& file);

// Four fifths of what the slowest rank and node reach.
Floors floors_below(const ClusterFacts& facts);
std::string floors_text(const Floors& floors);
// Call before the work. Throws as require_place_for_result().
void require_place_for_floors(const std::filesystem::path& file);

}  // namespace lockstep
