// Finds problems of a cluster and the nodes that cause them: a pure function of the measurements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "preflight/facts.hpp"
#include "preflight/floors.hpp"

namespace lockstep {

enum class Severity : std::uint8_t {
  note,         // a job runs, but not at full speed
  bad_cluster,  // no single node is at fault, so excluding one would not help
  bad_node
};

struct ClusterFinding {
  Severity severity = Severity::note;
  std::vector<std::string> hosts;  // the bad nodes; used with bad_node
  std::string sentence;
};

// Worst first.
std::vector<ClusterFinding> judge(const ClusterFacts& facts, const Floors& floors);

struct ClusterDiagnosis {
  int code = 0;                    // 0: no fault; 71: nodes are at fault; 1: another fault
  std::vector<std::string> hosts;  // nodes at fault, without duplicates
  std::string sentence;
};
ClusterDiagnosis diagnosis_of(const std::vector<ClusterFinding>& findings, const ClusterFacts& facts);

}  // namespace lockstep
