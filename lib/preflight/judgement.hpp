// What is wrong with a cluster, and whose fault it is: a pure function of what was measured.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "preflight/facts.hpp"
#include "preflight/floors.hpp"

namespace lockstep {

enum class Severity : std::uint8_t {
  note,         // a job runs, but not as it could
  bad_cluster,  // no node stands out: excluding one would not help
  bad_node
};

struct ClusterFinding {
  Severity severity = Severity::note;
  std::vector<std::string> hosts;  // of bad_node: which
  std::string sentence;
};

// Worst first.
std::vector<ClusterFinding> judge(const ClusterFacts& facts, const Floors& floors);

struct ClusterVerdict {
  int code = 0;                    // 0, 71 where nodes are to blame, 1 where something else is
  std::vector<std::string> hosts;  // those to blame, each once
  std::string sentence;
};
ClusterVerdict verdict_of(const std::vector<ClusterFinding>& findings, const ClusterFacts& facts);

}  // namespace lockstep
