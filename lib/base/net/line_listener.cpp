#include "base/net/line_listener.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <limits>

namespace lockstep {
namespace {

// One socket accepts IPv4 and IPv6. If the system has no IPv6, the socket is IPv4 only.
int make_listening_socket() {
  const auto try_family = [](int family, const sockaddr* address, socklen_t length) {
    const int socket = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket < 0) return -1;
    const int only_one_family = 0;
    if (family == AF_INET6) ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &only_one_family, sizeof only_one_family);
    if (::bind(socket, address, length) == 0 && ::listen(socket, SOMAXCONN) == 0) return socket;
    ::close(socket);
    return -1;
  };
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  const int both = try_family(AF_INET6, reinterpret_cast<const sockaddr*>(&any6), sizeof any6);
  if (both >= 0) return both;
  sockaddr_in any4{};
  any4.sin_family = AF_INET;
  return try_family(AF_INET, reinterpret_cast<const sockaddr*>(&any4), sizeof any4);
}

bool finish_connecting(int socket, std::chrono::milliseconds patience) {
  pollfd wait{socket, POLLOUT, 0};
  int error = ETIMEDOUT;
  socklen_t length = sizeof error;
  if (::poll(&wait, 1, static_cast<int>(patience.count())) > 0) {
    ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length);
  }
  errno = error;
  return error == 0;
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

}  // namespace

int max_open_files() {
  rlimit limit{};
  constexpr int most = std::numeric_limits<int>::max();
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > most) return most;
  return static_cast<int>(limit.rlim_cur);
}

int reserved_open_files(int max_files) { return std::min(max_files / 4, 128); }

LineListener::LineListener() : socket_(make_listening_socket()) {}

bool LineListener::is_paused() const {
  constexpr double rest_seconds = 0.1;
  return rest_ && rest_->seconds() < rest_seconds;
}

int LineListener::port() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  // The port has the same offset in both address families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

std::unique_ptr<LineSocket> LineListener::accept(std::size_t longest_line) {
  if (!is_open() || is_paused()) return nullptr;
  const int connected = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  // Some connections end before they are accepted.
  if (connected < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)) return nullptr;
  const int most = max_open_files();
  // The system returns the lowest free descriptor, so a high number means that all lower ones are in use.
  if (connected >= 0 && connected < most - reserved_open_files(most)) {
    return std::make_unique<LineSocket>(connected, longest_line);
  }
  if (connected >= 0) ::close(connected);
  rest_.emplace();
  return nullptr;
}

std::unique_ptr<LineSocket> connect_to(const std::string& address, int port, std::chrono::milliseconds patience,
                                       std::size_t longest_line) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return nullptr;
  const std::unique_ptr<addrinfo, FreeAddresses> owner(found);
  const int socket = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return nullptr;
  auto connection = std::make_unique<LineSocket>(socket, longest_line);
  const bool at_once = ::connect(socket, found->ai_addr, found->ai_addrlen) == 0;
  if (at_once || (errno == EINPROGRESS && finish_connecting(socket, patience))) return connection;
  const int reason = errno;
  connection.reset();
  errno = reason;
  return nullptr;
}

}  // namespace lockstep
