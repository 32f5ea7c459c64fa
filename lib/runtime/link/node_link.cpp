#include "runtime/link/node_link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/net/handshake.hpp"
#include "base/net/link_seal.hpp"
#include "base/net/node_addresses.hpp"
#include "base/net/sealed_socket.hpp"
#include "base/text/json_text.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::json;

// The messages: "views [...]", "seen" and "bye".
constexpr std::string_view views_follow = "views ";
constexpr std::string_view seen = "seen";
constexpr std::string_view bye = "bye";
constexpr std::size_t longest_text = 4 << 20;  // views of all ranks of a node, a hundred bytes each

}  // namespace

struct NodeLink::Node {
  std::unique_ptr<SealedSocket> socket;
  std::string host;
  std::vector<int> ranks;
  std::vector<RankView> views;
  double seconds_without_heartbeat = 0;
  bool awaits_acknowledgement = false;
  bool has_left = false;
  std::optional<Stopwatch> ended;

  bool is_open() const { return socket->state() == SealedSocket::State::open && !has_left; }
};

NodeLink::NodeLink(const Communicator& world, const Communicator& node, const std::string& host) {
  if (world.max(node.size()) == world.size()) return;
  is_hub_ = world.rank() == 0;
  std::vector<int> ranks;
  // careful-number: from our own ranks
  for (const std::string& rank : node.all_gather(std::to_string(world.rank()))) ranks.push_back(std::stoi(rank));
  if (is_hub_) {
    accept_nodes(world, host, ranks);
  } else if (node.rank() == 0) {
    connect_to_hub(world, host, ranks);
  } else {
    world.broadcast(std::string(), 0);
    world.gather("", 0);
  }
}

NodeLink::~NodeLink() = default;

// MPI also tells which nodes have connected, so that a node that gave up after its handshake does not count as dead.
void NodeLink::accept_nodes(const Communicator& world, const std::string& host, const std::vector<int>& ranks) {
  const std::string token = draw_secret();
  HandshakeServer handshakes(token);
  const NodeAddresses own = addresses_of_this_node();
  const Json invitation = {{"host", host},           {"ranks", ranks},
                           {"token", token},         {"port", handshakes.port()},
                           {"network", own.network}, {"addresses", own.addresses}};
  world.broadcast(json_text(invitation), 0);
  std::jthread handshake_thread([&handshakes](const std::stop_token& stop) {
    while (!stop.stop_requested()) handshakes.serve(std::chrono::milliseconds(5));
  });
  const std::vector<std::string> introductions = world.gather("", 0);
  handshake_thread.request_stop();
  handshake_thread.join();
  for (const std::string& text : introductions) {
    if (text.empty()) continue;
    const Json said = parse_json(text);
    nodes_.push_back(std::make_unique<Node>());
    nodes_.back()->socket = handshakes.take(said["challenge"]);
    nodes_.back()->host = said["host"];
    nodes_.back()->ranks = said["ranks"].get<std::vector<int>>();
    assert(nodes_.back()->socket != nullptr);
    nodes_.back()->socket->set_longest_text(longest_text);
  }
}

void NodeLink::connect_to_hub(const Communicator& world, const std::string& host, const std::vector<int>& ranks) {
  constexpr std::size_t max_addresses = 8;
  constexpr auto patience = std::chrono::seconds(15);
  const Json hub = parse_json(world.broadcast(std::string(), 0));
  std::vector<std::string> addresses =
      addresses_that_lead_to({hub["network"], hub["addresses"]}, addresses_of_this_node());
  addresses.resize(std::min(addresses.size(), max_addresses));
  std::optional<AuthenticatedPeer> greeted = connect_to_node(addresses, hub["port"], hub["token"], patience);
  if (!greeted) {
    log::warning(
        "cannot reach rank 0 on {} over TCP. Only the launcher can report a hang or a dead rank between the two nodes. "
        "Check for a firewall between the nodes.",
        hub["host"].get<std::string>());
    world.gather("", 0);
    return;
  }
  world.gather(json_text({{"host", host}, {"ranks", ranks}, {"challenge", greeted->challenge}}), 0);
  hub_ = std::make_unique<Node>();
  hub_->socket = std::move(greeted->socket);
  hub_->socket->set_longest_text(longest_text);
  hub_->host = hub["host"];
  hub_->ranks = hub["ranks"].get<std::vector<int>>();
}

void NodeLink::add_handles(std::vector<pollfd>& handles) const {
  for (const std::unique_ptr<Node>& node : nodes_) {
    if (node->is_open()) handles.push_back({node->socket->handle(), POLLIN, 0});
  }
  if (hub_ != nullptr && hub_->is_open()) handles.push_back({hub_->socket->handle(), POLLIN, 0});
}

void NodeLink::serve() {
  for (const std::unique_ptr<Node>& node : nodes_) read_messages(*node);
  if (hub_ != nullptr) read_messages(*hub_);
}

void NodeLink::read_messages(Node& node) {
  if (!node.is_open()) return;
  for (const std::string& text : node.socket->receive()) {
    node.seconds_without_heartbeat = 0;
    try {
      handle_message(node, text);
    } catch (const std::exception&) {  // an invalid message from a node of ours counts as none
    }
  }
  if (node.has_left) return;
  switch (node.socket->state()) {
    case SealedSocket::State::open:
      return;
    case SealedSocket::State::ended:
      node.ended.emplace();
      return;
    case SealedSocket::State::unreachable:
      log::warning(
          "{} on {} can no longer be reached over TCP. The job continues while its ranks still communicate. Check the "
          "network.",
          describe_ranks(node.ranks), node.host);
      return;
    case SealedSocket::State::forged:
      log::warning(
          "a message from {} on {} was changed on the way: its authentication code is wrong. No more messages from "
          "that node are accepted. Check who can change traffic on this network.",
          describe_ranks(node.ranks), node.host);
  }
}

void NodeLink::handle_message(Node& node, const std::string& text) {
  if (text == bye) {
    node.has_left = true;
  } else if (text == seen) {
    node.awaits_acknowledgement = false;
  } else if (text.starts_with(views_follow)) {
    node.views = views_from_text(std::string_view(text).substr(views_follow.size()), node.host);
    node.socket->send(seen);
  }
}

void NodeLink::send_views(std::span<const RankView> views, double waking_seconds) {
  for (const std::unique_ptr<Node>& node : nodes_) node->seconds_without_heartbeat += waking_seconds;
  if (hub_ == nullptr) return;
  hub_->seconds_without_heartbeat += waking_seconds;
  if (!hub_->is_open() || std::exchange(hub_->awaits_acknowledgement, true)) return;
  hub_->socket->send(fmt::format("{}{}", views_follow, to_text(views)));
}

std::vector<RankView> NodeLink::others() const {
  std::vector<RankView> all;
  for (const std::unique_ptr<Node>& node : nodes_) all.insert(all.end(), node->views.begin(), node->views.end());
  return all;
}

std::vector<const NodeLink::Node*> NodeLink::remaining() const {
  std::vector<const Node*> all;
  for (const std::unique_ptr<Node>& node : nodes_) {
    if (!node->has_left) all.push_back(node.get());
  }
  if (hub_ != nullptr && !hub_->has_left) all.push_back(hub_.get());
  return all;
}

std::optional<RankFailure> NodeLink::find_death(Urgency urgency) const {
  constexpr double for_own_words = 1;    // for a rank that failed to report its failure and end the job
  constexpr double for_survivors = 2.5;  // for survivors on that node, which know how it died
  for (const Node* node : remaining()) {
    if (!node->ended) continue;
    const bool is_one = node->ranks.size() == 1;
    const bool is_due = node->ended->seconds() > (is_one ? for_own_words : for_survivors) ||
                        (is_one && urgency == Urgency::last_chance);
    if (!is_due) continue;
    return RankFailure{
        node->ranks.front(), node->host,
        fmt::format("{} on {} {} killed or ended without a word. The other ranks cannot continue without {}. "
                    "Check the last messages there and the memory of the node.",
                    describe_ranks(node->ranks), node->host, is_one ? "was" : "were", is_one ? "it" : "them")};
  }
  return std::nullopt;
}

// A node without any heartbeats may itself be cut off from the network, but its report could still reach the disk. So
// rank 0 reports first, if it still hears another node or there is only one. The others, which hear only rank 0,
// follow.
double NodeLink::report_delay_seconds(double heartbeat_timeout_seconds) const {
  constexpr double turn = 3;
  if (!is_hub()) return turn;
  const std::vector<const Node*> nodes = remaining();
  const bool hears_some = std::ranges::any_of(
      nodes, [&](const Node* node) { return node->seconds_without_heartbeat < heartbeat_timeout_seconds / 2; });
  return hears_some || nodes.size() == 1 ? 0 : 2 * turn;
}

std::optional<RankFailure> NodeLink::find_lost_heartbeat(double timeout_seconds) const {
  constexpr double for_others = 5;  // for ranks that are closer to the node, and know more
  const double heartbeat_timeout_seconds = timeout_seconds + for_others;
  for (const Node* node : remaining()) {
    if (node->seconds_without_heartbeat < heartbeat_timeout_seconds + report_delay_seconds(heartbeat_timeout_seconds))
      continue;
    return RankFailure{
        node->ranks.front(), node->host,
        fmt::format("no heartbeat from {} on {} for {}. It is stopped, or its node is cut off from the network. "
                    "Check that node. --hang-timeout 0 waits forever.",
                    describe_ranks(node->ranks), node->host, format_seconds(node->seconds_without_heartbeat))};
  }
  return std::nullopt;
}

void NodeLink::leave() {
  for (const std::unique_ptr<Node>& node : nodes_) {
    if (node->socket != nullptr) node->socket->send(bye);  // a node that has left may still wait for this message
  }
  if (hub_ != nullptr && hub_->is_open()) hub_->socket->send(bye);
}

bool NodeLink::have_left(int ranks) const {
  if (hub_ != nullptr) return hub_->has_left;
  int left = 0;
  for (const std::unique_ptr<Node>& node : nodes_) {
    if (node->has_left) left += static_cast<int>(node->ranks.size());
  }
  return left == ranks;
}

}  // namespace lockstep
