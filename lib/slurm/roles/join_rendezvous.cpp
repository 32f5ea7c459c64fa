#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <random>
#include <thread>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/io/descriptor.hpp"
#include "base/net/node_addresses.hpp"
#include "base/text/printable.hpp"
#include "slurm/roles/network_interfaces.hpp"
#include "slurm/roles/rendezvous.hpp"
#include "slurm/roles/rendezvous_messages.hpp"

namespace lockstep {
namespace {

// Below the usual ephemeral ports, above the usual service ports.
constexpr int first_port = 15000;
constexpr int last_port = 32000;

Error no_supervisor(const std::string& what) {
  return {Failure::out_of_step, fmt::format("this task cannot join the job: {}. See the messages of run_roles.", what)};
}

std::unique_ptr<SealedSocket> connect_to_rendezvous(const RendezvousAddress& point,
                                                    std::chrono::milliseconds patience) {
  const Stopwatch watch;
  while (watch.milliseconds() < static_cast<double>(patience.count())) {
    if (std::optional<AuthenticatedPeer> greeted =
            connect_to_node(point.addresses, point.port, point.token, patience)) {
      greeted->socket->set_longest_text(max_cluster_bytes);
      return std::move(greeted->socket);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  throw no_supervisor(
      fmt::format("run_roles does not answer at port {} of {}", point.port, fmt::join(point.addresses, ", ")));
}

std::string wait_for_line(SealedSocket& socket) {
  while (true) {
    const std::vector<std::string> lines = socket.receive();
    if (!lines.empty()) return lines.front();
    if (socket.state() == SealedSocket::State::forged)
      throw no_supervisor("a message of run_roles was changed on the network");
    if (socket.state() != SealedSocket::State::open) throw no_supervisor("run_roles closed the connection");
    pollfd wait{socket.handle(), POLLIN, 0};
    ::poll(&wait, 1, 1000);
  }
}

std::string own_address(const std::string& interface) {
  if (interface.empty()) {
    const std::vector<std::string> addresses = addresses_of_this_node().addresses;
    return addresses.empty() ? "127.0.0.1" : addresses.front();
  }
  std::string address = address_of_interface(interface);
  require(!address.empty(), Failure::usage,
          "the network interface '{}' (LOCKSTEP_INTERFACE) has no IPv4 address on this node, so instances cannot find "
          "each other. Choose another interface.",
          printable(interface));
  return address;
}

// Binds a free port of this node and holds it until the descriptor closes. Returns -1 if the port is in use.
Descriptor hold_port(int port) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return socket;
  return Descriptor(-1);
}

std::map<std::string, std::vector<int>> hold_ports(const std::map<std::string, std::int64_t>& wanted,
                                                   std::vector<Descriptor>& held) {
  std::random_device random;
  std::uniform_int_distribution<int> draw(first_port, last_port);
  std::map<std::string, std::vector<int>> ports;
  for (const auto& [label, count] : wanted) {
    for (int tries = 0; std::ssize(ports[label]) < count; ++tries) {
      require(tries < 10'000, Failure::bad_node, "no port from {} to {} is free on this node.", first_port, last_port);
      const int port = draw(random);
      Descriptor socket = hold_port(port);
      if (socket < 0) continue;
      held.push_back(std::move(socket));
      ports[label].push_back(port);
    }
  }
  return ports;
}

}  // namespace

JoinedTask join_rendezvous(const RendezvousAddress& point, const JoiningTask& task) {
  const std::unique_ptr<SealedSocket> socket = connect_to_rendezvous(point, task.patience);
  socket->send(join_request_text({point.step, static_cast<std::size_t>(task.rank), task.slurm_step}));
  const std::optional<PortReservation> reservation = parse_reservation(wait_for_line(*socket));
  if (!reservation) throw no_supervisor("run_roles sent an unexpected message");
  ClusterInstance one;
  one.host = task.host;
  one.address = own_address(task.interface);
  std::vector<Descriptor> held;
  one.ports = hold_ports(reservation->ports, held);
  socket->send(location_text(one));
  JoinedTask arrived{parse_cluster(wait_for_line(*socket), "the message of run_roles"), reservation->place};
  if (arrived.place >= arrived.cluster.instances.size())
    throw no_supervisor("run_roles assigned an instance that the job does not have");
  return arrived;
}

}  // namespace lockstep
