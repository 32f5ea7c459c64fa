// What is known of a cluster before a job begins: each rank's facts, each node's, and those of all ranks together.
//
// A node is the ranks that share memory; its first rank speaks for it.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct RankFacts {
  int rank = 0;
  int node = 0;  // its place in ClusterFacts::nodes
  std::string device;
  std::string gpu;                // the address on the bus of the one it computes on; empty: none
  int cores = 0;                  // that it may run on
  double samples_per_second = 0;  // forward and backward, while all ranks compute and none waits for another
  std::optional<int> wrong_part;  // of a sum over ranks as it arrived here: the rank whose part is not what it gave
};

// Two nodes' leaders send to each other at the same time.
struct LinkFacts {
  int other = 0;  // the node at its other end
  double latency_seconds = 0;
  double bytes_per_second = 0;  // in each direction
};

// Of the folder that a job would write into, as this node sees it.
struct FolderFacts {
  std::string fault;  // why it cannot be written; empty: it can
  double free_bytes = 0;
  double write_bytes_per_second = 0;  // until the bytes are safe
  double read_bytes_per_second = 0;   // of what was just written: a node that keeps it in memory is that fast
};

struct NodeFacts {
  std::string host;
  std::vector<int> ranks;
  std::map<std::string, std::string> versions;  // of the program and each library, by name
  double clock_ahead_seconds = 0;               // of the first node's
  double clock_error_seconds = 0;               // at most
  std::optional<LinkFacts> link;                // to the next node; of two nodes the first one has it, of one none
  FolderFacts folder;
};

// Timed in several looks, between which other sizes are: figures are of all looks together.
struct SumFacts {
  static constexpr int looks = 5;

  std::int64_t bytes = 0;            // of each rank
  std::vector<double> seconds = {};  // of the slowest rank, one for each sum, in order of size
  int sums_of_a_look = 0;

  double median() const { return seconds[seconds.size() / 2]; }
  double percentile_99() const { return seconds[(seconds.size() - 1) * 99 / 100]; }
};
// Bytes a second times 2 (n - 1) / n: what nccl-tests calls bus bandwidth (doc/PERFORMANCE.md there), which a link must
// carry at least for n ranks.
double bus_bytes_per_second(const SumFacts& sum, std::size_t ranks);

struct ClusterFacts {
  std::vector<RankFacts> ranks;  // by rank
  std::vector<NodeFacts> nodes;  // in the order of their first ranks
  std::vector<SumFacts> sums;    // by size
  std::string reducer;           // what sums
  std::string folder;            // that a job would write into
  std::string model;
  double checkpoint_bytes = 0;  // of a training of the model by SGD
};

nlohmann::json json_of(const RankFacts& facts);
nlohmann::json json_of(const NodeFacts& facts);
nlohmann::json json_of(const ClusterFacts& facts);
// What json_of() gave, of a rank of this job.
RankFacts rank_facts(std::string_view text);
NodeFacts node_facts(std::string_view text);

}  // namespace lockstep
