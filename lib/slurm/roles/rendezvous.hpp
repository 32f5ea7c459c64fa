// The rendezvous at which the tasks that run_roles starts become instances. Each task connects to run_roles, sends its
// location, reserves its ports and waits for all others. So an instance knows all others when its command begins, and
// no port is assigned twice.
//
//   task       {"step", "rank", "slurm_step"}             identifies the task
//   run_roles  {"place", "ports": {label: count}}         the ports to reserve
//   task       {"host", "address", "ports": {label: [..]}}  an instance's first task reserves its ports
//   run_roles  cluster.json, on one line, once all tasks have sent theirs
//
// The messages are lines of JSON over TCP. Anybody can reach the port. So both ends first prove that they know the
// job's token (base/net/handshake), and every line is authenticated. srun passes the token to the tasks in their
// environment, which other users cannot read. An unauthenticated peer receives a challenge and nothing else.
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

// Where the tasks of one step join; passed in the variable LOCKSTEP_ARRIVAL.
struct RendezvousAddress {
  std::string token;  // from draw_secret()
  std::size_t step = 0;
  int port = 0;
  std::vector<std::string> addresses;  // numeric
};
std::string rendezvous_address_text(const RendezvousAddress& point);
std::optional<RendezvousAddress> parse_rendezvous_address(const std::string& text);

// The result of joining for one task.
struct JoinedTask {
  Cluster cluster;
  std::size_t place = 0;
};
struct JoiningTask {
  std::int64_t rank = 0;  // srun's task number
  std::int64_t slurm_step = 0;
  std::string host;
  std::string interface;              // the interface whose address is reported; empty: any
  std::chrono::seconds patience{30};  // time to find run_roles
};
// Returns once all tasks of the job have joined. Throws Error(usage) if the interface has no address, and
// Error(out_of_step) if run_roles cannot be found or has given up.
JoinedTask join_rendezvous(const RendezvousAddress& point, const JoiningTask& task);

// The rendezvous in run_roles.
class Rendezvous {
 public:
  // Throws Error(other) if no port is available.
  Rendezvous(std::vector<Role> roles, std::vector<RoleStep> steps);

  RendezvousAddress address_of_step(std::size_t step) const;
  // Adds the descriptors to poll().
  void add_handles(std::vector<pollfd>& handles) const;
  // Reads the data that has arrived and sends pending data, without waiting.
  void process_events();

  bool all_have_joined() const;
  bool has_joined(std::size_t step) const;                         // all of its tasks
  std::string describe_missing() const;                            // "worker[1], worker[2]"; at most ten by name
  std::optional<std::int64_t> slurm_step(std::size_t step) const;  // srun's step number, once a task has sent it

  // Call it when all have joined: fills in where each instance runs.
  void fill_in(Cluster& cluster) const;
  // Call it once, after fill_in(): sends the cluster to all tasks, which then begin. Accepts no more connections;
  // process_events() continues to send.
  void begin(const Cluster& cluster);

 private:
  struct TaskPlace {
    std::size_t step = 0;
    std::size_t rank = 0;
  };
  struct Connection {
    std::unique_ptr<SealedSocket> socket;
    std::optional<TaskPlace> task;
  };

  void accept_peers();
  void handle_message(Connection& peer, const std::string& line);
  std::map<std::string, std::int64_t> ports_of(const TaskPlace& task) const;

  std::vector<Role> roles_;
  std::vector<RoleStep> steps_;
  std::string token_;
  std::optional<HandshakeServer> handshakes_;  // until all have joined
  std::vector<std::string> addresses_;
  std::vector<Connection> peers_;
  std::vector<ClusterInstance> instances_;
  std::vector<std::vector<bool>> has_joined_;  // by step and rank
  std::vector<std::optional<std::int64_t>> slurm_steps_;
};

}  // namespace lockstep
