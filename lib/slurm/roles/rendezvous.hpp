// How the tasks that run_roles starts become instances: each arrives at run_roles, tells where it is, reserves its
// ports and waits until all others have. So an instance knows all others when its command begins, and no port is
// promised twice.
//
//   task       {"step", "rank", "slurm_step"}             which one it is
//   run_roles  {"place", "ports": {label: count}}         what to reserve
//   task       {"host", "address", "ports": {label: [..]}}
//   run_roles  cluster.json, on one line, when all have come this far
//
// Lines of JSON over TCP. Anybody can reach the port: so both ends first prove that they know the job's token
// (base/net/handshake), and every line is sealed. srun hands the token to the tasks in their environment, which
// other users cannot read. Whoever does not prove it gets a challenge and nothing else.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/net/handshake.hpp"
#include "slurm/roles/cluster.hpp"
#include "slurm/roles/placement.hpp"

namespace lockstep {

// Where the tasks of one step join; in the variable LOCKSTEP_ARRIVAL.
struct RendezvousAddress {
  std::string token;  // as draw_secret() gives it
  std::size_t step = 0;
  int port = 0;
  std::vector<std::string> addresses;  // numeric
};
std::string rendezvous_address_text(const RendezvousAddress& point);
std::optional<RendezvousAddress> parse_rendezvous_address(const std::string& text);

// What a task has become.
struct JoinedTask {
  Cluster cluster;
  std::size_t place = 0;
};
struct JoiningTask {
  std::int64_t rank = 0;  // as srun counts
  std::int64_t slurm_step = 0;
  std::string host;
  std::string interface;              // that its address is of; empty: any
  std::chrono::seconds patience{30};  // to find run_roles
};
// Returns when all tasks of the job have arrived. Throws Error(usage) where the interface has no address,
// Error(out_of_step) where run_roles cannot be found or has given up.
JoinedTask join_rendezvous(const RendezvousAddress& point, const JoiningTask& task);

// The other end: of run_roles.
class Rendezvous {
 public:
  // Throws Error(other) where no port can be had.
  Rendezvous(std::vector<Role> roles, std::vector<RoleStep> steps);

  RendezvousAddress point_of(std::size_t step) const;
  // What to poll() for.
  void add_handles(std::vector<pollfd>& handles) const;
  // Takes in whatever has come and sends what is left to send, without waiting.
  void attend();

  bool all_have_joined() const;
  bool has_joined(std::size_t step) const;                         // all of its tasks
  std::string describe_missing() const;                            // "worker[1], worker[2]"; at most ten by name
  std::optional<std::int64_t> slurm_step(std::size_t step) const;  // srun's number of it, once a task has told

  // When all have arrived: who runs where.
  void fill_in(Cluster& cluster) const;
  // Then, once: tells it to all tasks, which begin. Nobody is let in any more; attend() goes on sending.
  void begin(const Cluster& cluster);

 private:
  struct Visitor {
    std::unique_ptr<SealedSocket> socket;
    std::optional<std::size_t> place;
  };

  void accept_peers();
  void hear(Visitor& visitor, const std::string& line);

  std::vector<Role> roles_;
  std::vector<RoleStep> steps_;
  std::string token_;
  std::optional<HandshakeServer> handshakes_;  // until all have arrived
  std::vector<std::string> addresses_;
  std::vector<Visitor> visitors_;
  std::vector<ClusterInstance> instances_;
  std::vector<bool> has_joined_;
  std::vector<std::optional<std::int64_t>> slurm_steps_;
};

}  // namespace lockstep
