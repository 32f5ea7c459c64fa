// How the tasks that run_roles starts become instances: each arrives at run_roles, tells where it is, reserves its
// ports and waits until all others have. So an instance knows all others when its command begins, and no port is
// promised twice.
//
//   task       {"token", "step", "rank", "slurm_step"}    which one it is
//   run_roles  {"place", "ports": {label: count}}         what to reserve
//   task       {"host", "address", "ports": {label: [..]}}
//   run_roles  cluster.json, on one line, when all have come this far
//
// Lines of JSON over TCP (base/net). Both ends take the other's for untrusted: anybody can reach the port, and the
// token, which tasks find in their environment, is all that tells them from strangers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/net/line_listener.hpp"
#include "slurm/roles/cluster.hpp"
#include "slurm/roles/placement.hpp"

namespace lockstep {

// Where to arrive, for one step; in the variable LOCKSTEP_ARRIVAL.
struct ArrivalPoint {
  std::string token;
  std::size_t step = 0;
  int port = 0;
  std::vector<std::string> addresses;  // numeric
};
std::string arrival_text(const ArrivalPoint& point);
std::optional<ArrivalPoint> parse_arrival(const std::string& text);

// What a task has become.
struct Arrived {
  Cluster cluster;
  std::size_t place = 0;
};
// Returns when all tasks of the job have arrived. `rank` and `slurm_step` are the task's, as srun counts; `interface`
// chooses its address, empty: any. Throws Error(usage) where the interface has no address, Error(out_of_step) where
// run_roles cannot be reached or has given up.
Arrived arrive(const ArrivalPoint& point, std::int64_t rank, std::int64_t slurm_step, const std::string& host,
               const std::string& interface);

// The other end: of run_roles.
class ArrivalDesk {
 public:
  // Throws Error(other) where no port can be had.
  ArrivalDesk(std::vector<Role> roles, std::vector<RoleStep> steps);

  ArrivalPoint point_of(std::size_t step) const;
  // What to poll() for reading.
  std::vector<int> handles() const;
  // Takes in whatever has come, without waiting.
  void attend();

  bool all_have_arrived() const;
  bool has_arrived(std::size_t step) const;                        // all of its tasks
  std::string missing_words() const;                               // "worker[1], worker[2]"; at most ten by name
  std::optional<std::int64_t> slurm_step(std::size_t step) const;  // srun's number of it, once a task has told

  // When all have arrived: who runs where.
  void fill_in(Cluster& cluster) const;
  // Then, once: tells it to all tasks, which begin.
  void begin(const Cluster& cluster);

 private:
  struct Visitor {
    std::unique_ptr<LineSocket> socket;
    std::optional<std::size_t> place;
  };

  void hear(Visitor& visitor, const std::string& line);

  std::vector<Role> roles_;
  std::vector<RoleStep> steps_;
  std::string token_;
  LineListener listener_;
  std::vector<std::string> addresses_;
  std::vector<Visitor> visitors_;
  std::vector<ClusterInstance> instances_;
  std::vector<bool> has_arrived_;
  std::vector<std::optional<std::int64_t>> slurm_steps_;
};

}  // namespace lockstep
