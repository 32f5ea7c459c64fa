#include "slurm/roles/rendezvous.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.hpp"
#include "base/net/node_addresses.hpp"
#include "base/text/json_text.hpp"
#include "base/text/number.hpp"
#include "slurm/roles/rendezvous_messages.hpp"

namespace lockstep {
namespace {

constexpr std::size_t longest_text = 16384;  // of a task's message, in bytes
constexpr int max_port = 65535;

}  // namespace

std::string rendezvous_address_text(const RendezvousAddress& point) {
  return fmt::format("{} {} {} {}", point.token, point.step, point.port, fmt::join(point.addresses, " "));
}

std::optional<RendezvousAddress> parse_rendezvous_address(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ' ') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  if (words.size() < 4) return std::nullopt;
  const auto step = parse_number<std::int64_t>(words[1], {0, max_instances});
  const auto port = parse_number<std::int64_t>(words[2], {1, max_port});
  if (!is_secret_text(words[0]) || !step || !port) return std::nullopt;
  return RendezvousAddress{
      words[0], static_cast<std::size_t>(*step), static_cast<int>(*port), {words.begin() + 3, words.end()}};
}

Rendezvous::Rendezvous(std::vector<Role> roles, std::vector<RoleStep> steps)
    : roles_(std::move(roles)),
      steps_(std::move(steps)),
      token_(draw_secret()),
      handshakes_(token_),
      addresses_(addresses_of_this_node().addresses),
      instances_(instances_of(roles_)),
      slurm_steps_(steps_.size()) {
  for (const RoleStep& step : steps_) has_joined_.emplace_back(step.places.size());
  require(handshakes_->is_open() && !addresses_.empty(), Failure::other,
          "this node provides no port, so instances cannot connect. Check the network of the node.");
}

RendezvousAddress Rendezvous::address_of_step(std::size_t step) const {
  return {token_, step, handshakes_.value().port(), addresses_};
}

void Rendezvous::add_handles(std::vector<pollfd>& handles) const {
  if (handshakes_) {
    for (const int handle : handshakes_->handles()) handles.push_back({handle, POLLIN, 0});
  }
  for (const Connection& peer : peers_) {
    const bool sends = peer.socket->has_unsent();
    handles.push_back({peer.socket->handle(), static_cast<short>(sends ? POLLIN | POLLOUT : POLLIN), 0});
  }
}

void Rendezvous::accept_peers() {
  handshakes_->serve(std::chrono::milliseconds(0));
  for (std::unique_ptr<SealedSocket>& socket : handshakes_->take_all()) {
    socket->set_longest_text(longest_text);
    peers_.push_back({std::move(socket), std::nullopt});
  }
}

void Rendezvous::process_events() {
  if (handshakes_) accept_peers();
  for (Connection& peer : peers_) {
    for (const std::string& line : peer.socket->receive()) handle_message(peer, line);
  }
  std::erase_if(peers_, [this](const Connection& peer) {
    const bool has_left = peer.socket == nullptr || peer.socket->state() != SealedSocket::State::open;
    if (has_left && peer.task) has_joined_[peer.task->step][peer.task->rank] = false;
    return has_left;
  });
}

void Rendezvous::handle_message(Connection& peer, const std::string& line) {
  if (peer.socket == nullptr) return;
  if (!peer.task) {
    const std::optional<JoinRequest> request = parse_join_request(line);
    const bool is_known =
        request && request->step < steps_.size() && request->rank < steps_[request->step].places.size();
    if (!is_known) return peer.socket.reset();
    peer.task = {request->step, request->rank};
    slurm_steps_[request->step] = request->slurm_step;
    peer.socket->send(reservation_text({steps_[request->step].places[request->rank], ports_of(*peer.task)}));
    return;
  }
  const auto [step, rank] = *peer.task;
  const std::map<std::string, std::int64_t> ports = ports_of(*peer.task);
  ClusterInstance other;  // further tasks of an instance
  ClusterInstance& one = ports.empty() ? other : instances_[steps_[step].places[rank]];
  if (!read_location(line, ports, one)) return peer.socket.reset();
  has_joined_[step][rank] = true;
}

std::map<std::string, std::int64_t> Rendezvous::ports_of(const TaskPlace& task) const {
  const std::vector<std::size_t>& places = steps_[task.step].places;
  if (task.rank > 0 && places[task.rank - 1] == places[task.rank]) return {};
  const ClusterInstance& one = instances_[places[task.rank]];
  return reserved_ports(roles_, one.role, one.instance);
}

bool Rendezvous::all_have_joined() const {
  return std::ranges::all_of(has_joined_,
                             [](const std::vector<bool>& ranks) { return std::ranges::count(ranks, false) == 0; });
}

bool Rendezvous::has_joined(std::size_t step) const { return std::ranges::count(has_joined_.at(step), false) == 0; }

std::string Rendezvous::describe_missing() const {
  constexpr std::size_t max_named = 10;
  std::set<std::size_t> missing;
  for (std::size_t step = 0; step < steps_.size(); ++step) {
    for (std::size_t rank = 0; rank < has_joined_[step].size(); ++rank) {
      if (!has_joined_[step][rank]) missing.insert(steps_[step].places[rank]);
    }
  }
  std::vector<std::string> names;
  for (const std::size_t place : missing) {
    names.push_back(instance_name(roles_[instances_[place].role], instances_[place].instance));
  }
  const std::size_t others = names.size() - std::min(names.size(), max_named);
  names.resize(names.size() - others);
  return fmt::format("{}{}", fmt::join(names, ", "), others == 0 ? "" : fmt::format(" and {} others", others));
}

std::optional<std::int64_t> Rendezvous::slurm_step(std::size_t step) const { return slurm_steps_.at(step); }

void Rendezvous::fill_in(Cluster& cluster) const {
  cluster.roles = roles_;
  cluster.instances = instances_;
}

void Rendezvous::begin(const Cluster& cluster) {
  handshakes_.reset();
  const std::string text = cluster_text(cluster);
  for (Connection& peer : peers_) peer.socket->send(text);
}

}  // namespace lockstep
