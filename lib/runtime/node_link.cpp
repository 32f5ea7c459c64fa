#include "runtime/node_link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/log.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::json;

// What is said: "hello {...}" and "welcome", "views [...]" and "seen", "bye".
constexpr std::string_view hello = "hello ";
constexpr std::string_view welcome = "welcome";
constexpr std::string_view views_follow = "views ";
constexpr std::string_view seen = "seen";
constexpr std::string_view bye = "bye";

// Strangers may knock; they cannot guess it.
std::string random_token() {
  std::random_device source;
  return fmt::format("{:08x}{:08x}{:08x}", source(), source(), source());
}

bool hears_welcome(LineSocket& socket) {
  constexpr double patience_seconds = 5;
  const Stopwatch watch;
  while (watch.seconds() < patience_seconds && socket.state() == LineSocket::State::open) {
    pollfd wait{socket.handle(), POLLIN, 0};
    ::poll(&wait, 1, 100);
    const std::vector<std::string> lines = socket.receive();
    if (!lines.empty()) return lines.front() == welcome;
  }
  return false;
}

}  // namespace

struct NodeLink::Node {
  std::unique_ptr<LineSocket> socket;
  std::string host;  // empty: it has not said who it is
  std::vector<int> ranks;
  std::vector<RankView> views;
  double silent_seconds = 0;
  bool owes_answer = false;
  bool has_left = false;
  std::optional<Stopwatch> ended;

  bool is_open() const { return socket != nullptr && socket->state() == LineSocket::State::open && !has_left; }
  bool is_missed() const { return !host.empty() && !has_left; }
};

NodeLink::NodeLink(const Communicator& world, const Communicator& node, const std::string& host) {
  if (world.max(node.size()) == world.size()) return;
  std::vector<int> ranks;
  for (const std::string& rank : node.all_gather(std::to_string(world.rank()))) ranks.push_back(std::stoi(rank));
  Json introduction = {{"host", host}, {"ranks", ranks}};
  if (world.rank() == 0) {
    listener_ = std::make_unique<LineListener>();
    token_ = random_token();
    introduction["port"] = listener_->port();
    introduction["token"] = token_;
    introduction["addresses"] = addresses_of_this_node();
  }
  const Json hub = Json::parse(world.broadcast(introduction.dump(), 0));
  if (node.rank() == 0 && world.rank() != 0) {
    hub_ = std::make_unique<Node>();
    hub_->host = hub["host"];
    hub_->ranks = hub["ranks"].get<std::vector<int>>();
    introduction["token"] = hub["token"];
    knock(hub["addresses"], hub["port"], introduction.dump());
  }
}

NodeLink::~NodeLink() = default;

void NodeLink::knock(const std::vector<std::string>& addresses, int port, const std::string& introduction) {
  constexpr std::size_t most = 8;
  for (std::size_t i = 0; i < std::min(addresses.size(), most); ++i) {
    std::unique_ptr<LineSocket> socket = connect_to(addresses[i], port, std::chrono::seconds(1));
    if (socket == nullptr) continue;
    socket->send(fmt::format("{}{}", hello, introduction));
    if (!hears_welcome(*socket)) continue;
    hub_->socket = std::move(socket);
    return;
  }
  log::warning(
      "cannot reach rank 0 on {} over TCP (a hang or a death on one of the two nodes is told to the other by the "
      "launcher alone). Is there a firewall between nodes?",
      hub_->host);
  hub_.reset();
}

void NodeLink::add_handles(std::vector<pollfd>& handles) const {
  if (listener_ != nullptr) handles.push_back({listener_->handle(), POLLIN, 0});
  for (const std::unique_ptr<Node>& node : nodes_) {
    if (node->is_open()) handles.push_back({node->socket->handle(), POLLIN, 0});
  }
  if (hub_ != nullptr && hub_->is_open()) handles.push_back({hub_->socket->handle(), POLLIN, 0});
}

void NodeLink::serve() {
  if (listener_ != nullptr) {
    while (std::unique_ptr<LineSocket> socket = listener_->accept()) {
      nodes_.push_back(std::make_unique<Node>());
      nodes_.back()->socket = std::move(socket);
    }
  }
  for (const std::unique_ptr<Node>& node : nodes_) listen(*node);
  if (hub_ != nullptr) listen(*hub_);
  std::erase_if(nodes_, [](const std::unique_ptr<Node>& node) { return node->host.empty() && !node->is_open(); });
}

void NodeLink::listen(Node& node) {
  if (!node.is_open()) return;
  for (const std::string& line : node.socket->receive()) {
    node.silent_seconds = 0;
    try {
      hear(node, line);
    } catch (const std::exception&) {
      node.has_left = node.host.empty();  // a stranger; what a node of ours garbles is as good as silence
    }
  }
  if (!node.is_missed() || node.is_open()) return;
  if (node.socket->state() == LineSocket::State::ended) {
    node.ended.emplace();
  } else {
    log::warning(
        "{} on {} cannot be reached any more (the job goes on while they answer each other). Is the network down?",
        rank_words(node.ranks), node.host);
  }
}

void NodeLink::hear(Node& node, const std::string& line) {
  if (line == bye) {
    node.has_left = true;
  } else if (line == seen) {
    node.owes_answer = false;
  } else if (line.starts_with(views_follow) && !node.host.empty()) {
    node.views = views_from_text(std::string_view(line).substr(views_follow.size()), node.host);
    node.socket->send(seen);
  } else if (line.starts_with(hello) && listener_ != nullptr) {
    const Json said = Json::parse(line.substr(hello.size()));
    require(said.at("token") == token_, Failure::other, "a stranger");
    node.ranks = said.at("ranks").get<std::vector<int>>();
    node.host = said.at("host");
    node.socket->send(welcome);
  } else {
    throw Error("nobody says this");
  }
}

void NodeLink::tell(std::span<const RankView> views, double waking_seconds) {
  for (const std::unique_ptr<Node>& node : nodes_) node->silent_seconds += waking_seconds;
  if (hub_ == nullptr) return;
  hub_->silent_seconds += waking_seconds;
  if (!hub_->is_open() || std::exchange(hub_->owes_answer, true)) return;
  hub_->socket->send(fmt::format("{}{}", views_follow, to_text(views)));
}

std::vector<RankView> NodeLink::others() const {
  std::vector<RankView> all;
  for (const std::unique_ptr<Node>& node : nodes_) all.insert(all.end(), node->views.begin(), node->views.end());
  return all;
}

std::vector<const NodeLink::Node*> NodeLink::missed() const {
  std::vector<const Node*> all;
  for (const std::unique_ptr<Node>& node : nodes_) {
    if (node->is_missed()) all.push_back(node.get());
  }
  if (hub_ != nullptr && hub_->is_missed()) all.push_back(hub_.get());
  return all;
}

std::optional<Finding> NodeLink::find_death(Urgency urgency) const {
  constexpr double for_own_words = 1;    // of a rank that failed and ends the job itself
  constexpr double for_survivors = 2.5;  // on that node, who know how it died
  for (const Node* node : missed()) {
    if (!node->ended) continue;
    const bool is_one = node->ranks.size() == 1;
    const bool is_due = node->ended->seconds() > (is_one ? for_own_words : for_survivors);
    if (!is_due && !(is_one && urgency == Urgency::last_chance)) continue;
    return Finding{
        node->ranks.front(), node->host,
        fmt::format("{} on {} {} killed or ended without a word (no rank can go on without {}). Look for last "
                    "words there, and at the node's memory.",
                    rank_words(node->ranks), node->host, is_one ? "was" : "were", is_one ? "it" : "them")};
  }
  return std::nullopt;
}

// Who hears nobody may be the one that is cut off, and a file system of its own may carry its report nevertheless. So
// rank 0 speaks first, if it still hears a node or there is but one to hear; then the others, who hear rank 0 alone.
double NodeLink::turn_seconds(double silence_seconds) const {
  constexpr double turn = 3;
  if (!is_hub()) return turn;
  const std::vector<const Node*> nodes = missed();
  const bool hears_some =
      std::ranges::any_of(nodes, [&](const Node* node) { return node->silent_seconds < silence_seconds / 2; });
  return hears_some || nodes.size() == 1 ? 0 : 2 * turn;
}

std::optional<Finding> NodeLink::find_silence(double timeout_seconds) const {
  constexpr double for_others = 5;  // who are nearer, and know more
  const double silence_seconds = timeout_seconds + for_others;
  for (const Node* node : missed()) {
    if (node->silent_seconds < silence_seconds + turn_seconds(silence_seconds)) continue;
    return Finding{
        node->ranks.front(), node->host,
        fmt::format("nothing has been heard of {} on {} for {} (stopped, or cut off from the network). Look at "
                    "that node; --hang-timeout 0 waits for ever.",
                    rank_words(node->ranks), node->host, seconds_words(node->silent_seconds))};
  }
  return std::nullopt;
}

void NodeLink::leave() {
  for (const std::unique_ptr<Node>& node : nodes_) {
    if (node->is_open()) node->socket->send(bye);
  }
  if (hub_ != nullptr && hub_->is_open()) hub_->socket->send(bye);
}

}  // namespace lockstep
