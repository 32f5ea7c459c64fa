// Facts about a cluster before a job begins: of each rank, of each node, and of all ranks together.
//
// A node is a set of ranks that share memory. Its first rank is the node leader.
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
  int node = 0;  // index in ClusterFacts::nodes
  std::string device;
  std::string gpu;                       // PCI address of the GPU it computes on; empty: none
  int cores = 0;                         // cores that it may run on
  double samples_per_second = 0;         // forward and backward, while all ranks compute without synchronization
  std::optional<int> wrong_contributor;  // rank whose contribution arrived here damaged in a checked sum
};

// A link, measured while the node leaders at both ends send to each other at the same time.
struct LinkFacts {
  int other = 0;  // index of the node at the other end
  double latency_seconds = 0;
  double bytes_per_second = 0;  // in each direction
};

// The output folder of a job, as this node sees it.
struct FolderFacts {
  std::string fault;  // why it is not writable; empty: it is
  double free_bytes = 0;
  double write_bytes_per_second = 0;  // until the data is on stable storage
  double read_bytes_per_second = 0;   // of the data just written, possibly from the page cache
};

struct NodeFacts {
  std::string host;
  std::vector<int> ranks;
  std::map<std::string, std::string> versions;  // of the program and each library, by name
  double clock_ahead_seconds = 0;               // relative to the first node's clock
  double clock_error_seconds = 0;               // upper bound of the error
  std::optional<LinkFacts> link;                // to the next node; with two nodes only the first has it, with one none
  FolderFacts folder;
};

// All-reduces of one size. They are timed in several rounds that alternate with other sizes; figures cover all rounds.
struct AllReduceFacts {
  static constexpr int looks = 5;

  std::int64_t bytes = 0;            // per rank
  std::vector<double> seconds = {};  // time of the slowest rank, one per all-reduce, sorted
  int sums_of_a_look = 0;

  double median() const { return seconds[seconds.size() / 2]; }
  double percentile_99() const { return seconds[(seconds.size() - 1) * 99 / 100]; }
};
// Bytes per second times 2 (n - 1) / n for n ranks: nccl-tests' bus bandwidth (its doc/PERFORMANCE.md). Links must have
// at least this bandwidth.
double bus_bytes_per_second(const AllReduceFacts& sum, std::size_t ranks);

struct ClusterFacts {
  std::vector<RankFacts> ranks;      // by rank
  std::vector<NodeFacts> nodes;      // ordered by their first ranks
  std::vector<AllReduceFacts> sums;  // by size
  std::string reducer;               // the all-reduce implementation
  std::string folder;                // a job's output folder
  std::string model;
  double checkpoint_bytes = 0;  // of a training of the model with SGD
};

nlohmann::json json_of(const RankFacts& facts);
nlohmann::json json_of(const NodeFacts& facts);
nlohmann::json json_of(const ClusterFacts& facts);
// The inverse of json_of(), for text from a rank of this job.
RankFacts rank_facts(std::string_view text);
NodeFacts node_facts(std::string_view text);

}  // namespace lockstep
