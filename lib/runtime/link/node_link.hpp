// The monitoring link between the nodes of a job. The first rank of each node, the node leader, connects to rank 0 over
// TCP. MPI is not used, because it needs the cooperation of ranks that may be stuck.
//
// The nodes connect while the link is constructed, and prove that they belong to one job (base/net/handshake).
// Afterwards nobody accepts connections, and every line is sealed.
//
// Node leaders send their nodes' views to rank 0 once a second, and rank 0 acknowledges them. A connection that closes
// without a goodbye means a death. A connection without messages may mean a stopped process or a broken network; the
// hang timeout applies to it.
#pragma once

#include <poll.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "runtime/watch/hang.hpp"
#include "runtime/watch/rank_view.hpp"

namespace lockstep {

class NodeLink {
 public:
  // Collective over `world`. `node` contains the ranks of this node, and `host` is its name. Warns if a node cannot
  // reach rank 0.
  NodeLink(const Communicator& world, const Communicator& node, const std::string& host);
  ~NodeLink();

  bool is_used() const { return is_hub_ || hub_ != nullptr; }
  bool is_hub() const { return is_hub_; }
  void add_handles(std::vector<pollfd>& handles) const;

  // Reads what has arrived. Does not wait.
  void serve();
  // Call once a period with this node's views. Sends them to rank 0 if the previous ones were acknowledged.
  void send_views(std::span<const RankView> views, double waking_seconds);
  // On rank 0: the last views of the other nodes.
  std::vector<RankView> others() const;

  // Finds a node whose leader ended without a goodbye. Survivors on that node know more, so they get time to report
  // first, unless `last_chance`: this process is about to end.
  enum class Urgency { may_wait, last_chance };
  std::optional<RankFailure> find_death(Urgency urgency) const;
  // Finds a node without a heartbeat for longer than the hang timeout plus a few seconds, in which ranks closer to it
  // may report first. Waits longer if this node may itself be cut off from the network.
  std::optional<RankFailure> find_lost_heartbeat(double timeout_seconds) const;

  // Sends a goodbye: this node's leader ends normally, and the others do not report a death.
  void leave();
  // Whether all other nodes, with `ranks` ranks in total, have left. Rank 0 hears every node; the others hear rank 0
  // only, which leaves last.
  bool have_left(int ranks) const;

 private:
  struct Node;
  void accept_nodes(const Communicator& world, const std::string& host, const std::vector<int>& ranks);
  void connect_to_hub(const Communicator& world, const std::string& host, const std::vector<int>& ranks);
  void read_messages(Node& node);
  void handle_message(Node& node, const std::string& text);
  std::vector<const Node*> remaining() const;
  double report_delay_seconds(double heartbeat_timeout_seconds) const;

  bool is_hub_ = false;                       // this is rank 0, and there are other nodes
  std::vector<std::unique_ptr<Node>> nodes_;  // on rank 0: the other nodes
  std::unique_ptr<Node> hub_;                 // on the other node leaders: rank 0's node
};

}  // namespace lockstep
