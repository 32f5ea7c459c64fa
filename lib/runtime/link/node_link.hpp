// How the nodes of a job know of each other: the first rank of each node speaks for it to rank 0, over TCP and not MPI,
// which needs the help of ranks that may be stuck.
//
// They meet while the link is built, and prove to each other that they are of one job (base/net/handshake).
// From then on nobody listens for connections any more, and every line is under a seal.
//
// Rank 0 gets the views of all nodes once a second and answers them. A connection that ends without a word is a death;
// one that falls silent may be a stopped process or a broken network, which the hang timeout judges.
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
  // Collective over `world`, of which `node` holds the ranks of this node, called `host`. Warns where nodes cannot
  // reach rank 0.
  NodeLink(const Communicator& world, const Communicator& node, const std::string& host);
  ~NodeLink();

  bool is_used() const { return is_hub_ || hub_ != nullptr; }
  bool is_hub() const { return is_hub_; }
  void add_handles(std::vector<pollfd>& handles) const;

  // Takes in what has arrived; does not wait.
  void serve();
  // Once a period, with this node's views: sends them to rank 0, if the last ones were answered.
  void tell(std::span<const RankView> views, double waking_seconds);
  // Rank 0: the last views of the other nodes.
  std::vector<RankView> others() const;

  // A node whose leader ended without a word. Survivors on it know more and are given time to say it, unless
  // `last_chance`: this process is about to end.
  enum class Urgency { may_wait, last_chance };
  std::optional<Blame> find_death(Urgency urgency) const;
  // A node that has been silent for longer than the hang timeout and some seconds in which ranks nearer to it may tell
  // more; for longer still where this node may itself be on the silent side of a broken network.
  std::optional<Blame> find_lost_heartbeat(double timeout_seconds) const;

  // This node's leader ends as it should: to nobody a death.
  void leave();
  // Whether all the others have left, who are `ranks`. Rank 0 hears each of them; they hear rank 0, which speaks for
  // all.
  bool have_left(int ranks) const;

 private:
  struct Node;
  void receive_nodes(const Communicator& world, const std::string& host, const std::vector<int>& ranks);
  void meet_hub(const Communicator& world, const std::string& host, const std::vector<int>& ranks);
  void listen(Node& node);
  void hear(Node& node, const std::string& text);
  std::vector<const Node*> missed() const;
  double turn_seconds(double heartbeat_timeout_seconds) const;

  bool is_hub_ = false;                       // this is rank 0, and there are other nodes
  std::vector<std::unique_ptr<Node>> nodes_;  // rank 0: the others
  std::unique_ptr<Node> hub_;                 // the others' leaders: rank 0's node
};

}  // namespace lockstep
