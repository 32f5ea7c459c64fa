// Somebody on the network who is of no job, and none of whose business it is: comes to a port of this machine, again
// and again, and does harm there. As the user nobody, if root starts it.
//
//   unauthenticated_program PORT SECONDS WAY...
//   unauthenticated_program pid:PROCESS:PATIENCE SECONDS WAY...    waits for the port on which that process listens for
//   other
//                                                           nodes, for so many seconds
//
// One process for each WAY of those below. Prints how many times somebody was there who spoke first.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/io/descriptor.hpp"

namespace lockstep {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

struct Shared {
  std::atomic<int> port = 0;
  std::atomic<int> heard = 0;
  std::atomic<int> connections = 0;
};

class UnauthenticatedPeer {
 public:
  UnauthenticatedPeer(Shared& shared, double seconds) : shared_(shared), seconds_(seconds) {}

  bool goes_on() const { return watch_.seconds() < seconds_; }
  std::unique_ptr<Descriptor> come() const {
    auto socket = std::make_unique<Descriptor>(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(shared_.port.load()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(*socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return nullptr;
    ++shared_.connections;
    return socket;
  }
  // What is said first, if anything within a moment.
  std::string hear(int socket) const {
    pollfd wait{socket, POLLIN, 0};
    if (::poll(&wait, 1, 200) <= 0) return "";
    std::array<char, 256> room{};
    const ssize_t got = ::recv(socket, room.data(), room.size(), MSG_DONTWAIT);
    if (got <= 0) return "";
    ++shared_.heard;
    return {room.data(), static_cast<std::size_t>(got)};
  }
  static bool say(int socket, const std::string& text) {
    return ::send(socket, text.data(), text.size(), MSG_NOSIGNAL) > 0;
  }

 private:
  Shared& shared_;
  double seconds_;
  Stopwatch watch_;
};

// Says `text` for as long as somebody takes it.
void flood(const UnauthenticatedPeer& peer, const std::string& text) {
  while (peer.goes_on()) {
    const auto socket = peer.come();
    if (socket == nullptr) {
      std::this_thread::sleep_for(1ms);
      continue;
    }
    peer.hear(*socket);
    while (peer.goes_on() && UnauthenticatedPeer::say(*socket, text)) {
    }
  }
}

std::string noise() {
  std::string text(1 << 16, '\0');
  std::uint32_t state = 1;
  for (char& letter : text) letter = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return text;
}

// What nobody could say who does not know the token, but as long and as well spelt.
void pose(const UnauthenticatedPeer& peer) {
  while (peer.goes_on()) {
    const auto socket = peer.come();
    if (socket != nullptr && !peer.hear(*socket).empty()) {
      UnauthenticatedPeer::say(*socket, fmt::format("{} {} hello\n", std::string(64, 'a'), std::string(64, 'b')));
      UnauthenticatedPeer::say(*socket, "bye\nhello {\"host\":\"n9\",\"ranks\":[1],\"token\":\"\"}\nviews [[1]]\n");
      peer.hear(*socket);
    }
    std::this_thread::sleep_for(1ms);
  }
}

// A byte now and then, on several connections.
void dawdle(const UnauthenticatedPeer& peer) {
  std::vector<std::unique_ptr<Descriptor>> sockets(20);
  while (peer.goes_on()) {
    for (auto& socket : sockets) {
      if (socket == nullptr) {
        socket = peer.come();
        if (socket != nullptr) peer.hear(*socket);
      }
      if (socket != nullptr && !UnauthenticatedPeer::say(*socket, "a")) socket = nullptr;
    }
    std::this_thread::sleep_for(20ms);
  }
}

void stay(const UnauthenticatedPeer& peer, std::size_t most) {
  std::vector<std::unique_ptr<Descriptor>> sockets;
  while (peer.goes_on()) {
    auto socket = sockets.size() < most ? peer.come() : nullptr;
    if (socket == nullptr) {
      std::this_thread::sleep_for(1ms);
      continue;
    }
    sockets.push_back(std::move(socket));
    if (sockets.size() % 100 == 0) peer.hear(*sockets.back());
  }
}

const std::map<std::string, std::function<void(const UnauthenticatedPeer&)>> ways = {
    {"newlines", [](const UnauthenticatedPeer& peer) { flood(peer, std::string(1 << 18, '\n')); }},
    {"endless_line", [](const UnauthenticatedPeer& peer) { flood(peer, std::string(1 << 18, 'x')); }},
    {"noise", [](const UnauthenticatedPeer& peer) { flood(peer, noise()); }},
    {"hello", [](const UnauthenticatedPeer& peer) { flood(peer, "\n"); }},
    {"pose", pose},
    {"dawdle", dawdle},
    {"stay", [](const UnauthenticatedPeer& peer) { stay(peer, 2500); }},
};

// Ports above those that MPI counts up from 1024, on which somebody listens for both families, by the inodes of the
// sockets. The kernel is asked directly: its tables in /proc take milliseconds.
std::map<std::uint32_t, int> listening() {
  const Descriptor diagnosis(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  struct {
    nlmsghdr header{};
    inet_diag_req_v2 wanted{};
  } request;
  request.header = {sizeof request, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 0, 0};
  request.wanted.sdiag_family = AF_INET6;
  request.wanted.sdiag_protocol = IPPROTO_TCP;
  request.wanted.idiag_states = 1U << TCP_LISTEN;
  std::map<std::uint32_t, int> ports;
  if (::send(diagnosis, &request, sizeof request, 0) < 0) return ports;
  for (bool goes_on = true; goes_on;) {
    alignas(nlmsghdr) std::array<char, 1 << 15> room{};
    auto left = static_cast<unsigned>(std::max<ssize_t>(::recv(diagnosis, room.data(), room.size(), 0), 0));
    const auto* answer = reinterpret_cast<const nlmsghdr*>(room.data());
    goes_on = false;
    for (; NLMSG_OK(answer, left); answer = NLMSG_NEXT(answer, left)) {
      if (answer->nlmsg_type != SOCK_DIAG_BY_FAMILY) return ports;
      goes_on = true;
      const auto* socket = static_cast<const inet_diag_msg*>(NLMSG_DATA(answer));
      constexpr int first_of_the_system = 32768;
      const int port = ntohs(socket->id.idiag_sport);
      if (port >= first_of_the_system) ports[socket->idiag_inode] = port;
    }
  }
  return ports;
}

// 0: the process listens at none of `ports`.
int port_of(const fs::path& process, const std::map<std::uint32_t, int>& ports) {
  std::error_code none;
  for (const fs::directory_entry& file : fs::directory_iterator(process / "fd", none)) {
    const std::string target = fs::read_symlink(file.path(), none).string();
    if (!target.starts_with("socket:[")) continue;
    const auto place = ports.find(static_cast<std::uint32_t>(std::stoul(target.substr(8))));
    if (place != ports.end()) return place->second;
  }
  return 0;
}

int wait_for_port(const fs::path& process, double seconds) {
  const Stopwatch watch;
  std::map<std::uint32_t, int> before;
  while (watch.seconds() < seconds) {
    std::map<std::uint32_t, int> now = listening();
    const int port = now == before ? 0 : port_of(process, now);
    if (port != 0) return port;
    before = std::move(now);
  }
  return 0;
}

// `where` as in the usage above.
int port_at(const std::string& where) {
  if (!where.starts_with("pid:")) return std::stoi(where);
  const std::size_t patience = where.rfind(':') + 1;
  return wait_for_port("/proc/" + where.substr(4, patience - 5), std::stod(where.substr(patience)));
}

void become_nobody() {
  constexpr uid_t nobody = 65534;
  if (::geteuid() == 0 && (::setgid(nobody) != 0 || ::setuid(nobody) != 0)) ::_exit(1);
}

int run(const std::string& where, double seconds, const std::vector<std::string>& chosen) {
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& shared = *new (memory) Shared;
  std::array<int, 2> gate{};  // opens when the port is known
  if (::pipe(gate.data()) != 0) return 1;
  for (const std::string& way : chosen) {
    if (::fork() != 0) continue;
    become_nobody();
    ::close(gate[1]);
    char nothing = 0;
    [[maybe_unused]] const ssize_t end = ::read(gate[0], &nothing, 1);
    if (shared.port != 0) ways.at(way)(UnauthenticatedPeer(shared, seconds));
    ::_exit(0);
  }
  shared.port = port_at(where);
  ::close(gate[1]);
  while (::wait(nullptr) > 0) {
  }
  fmt::print("port {}, {} connections, {} answers\n", shared.port.load(), shared.connections.load(),
             shared.heard.load());
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::run(argv[1], std::atof(argv[2]), std::vector<std::string>(argv + 3, argv + argc));
}
