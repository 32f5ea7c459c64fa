#include "runtime/line_socket.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace lockstep {
namespace {

constexpr std::size_t longest_line = 4 << 20;  // views of all ranks of a node: a hundred bytes each

void set(int socket, int level, int option, int value) { ::setsockopt(socket, level, option, &value, sizeof value); }

// A node that went down sends nothing that would say so. A process that is stopped still has its system answer for it.
void set_keepalive(int socket) {
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 2);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 8000);
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
}

// One socket takes both families; where the system has no IPv6, one of IPv4.
int make_listening_socket() {
  const auto try_family = [](int family, const sockaddr* address, socklen_t length) {
    const int socket = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket < 0) return -1;
    if (family == AF_INET6) set(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
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

// Moves whole lines from the front of `text` to the end of `lines`.
void take_lines(std::string& text, std::vector<std::string>& lines) {
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  text.erase(0, begin);
}

struct FreeAddresses {
  void operator()(ifaddrs* list) const { ::freeifaddrs(list); }
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

// Empty for what is of no use to others: links that are down, addresses that mean something on one link only.
std::string numeric_address(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0) return "";
  const int family = entry.ifa_addr->sa_family;
  if (family != AF_INET && family != AF_INET6) return "";
  if (family == AF_INET6 &&
      IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr)->sin6_addr) != 0) {
    return "";
  }
  std::array<char, NI_MAXHOST> text{};
  const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  const int code = ::getnameinfo(entry.ifa_addr, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return code == 0 ? text.data() : "";
}

bool finish_connecting(int socket, std::chrono::milliseconds patience) {
  pollfd wait{socket, POLLOUT, 0};
  if (::poll(&wait, 1, static_cast<int>(patience.count())) <= 0) return false;
  int error = 0;
  socklen_t length = sizeof error;
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0;
}

}  // namespace

LineSocket::LineSocket(int connected) : socket_(connected) {
  ::fcntl(socket_, F_SETFL, ::fcntl(socket_, F_GETFL) | O_NONBLOCK);
  set_keepalive(socket_);
}

void LineSocket::fail(int error) {
  if (state_ == State::open) state_ = error == ECONNRESET || error == EPIPE ? State::ended : State::unreachable;
}

void LineSocket::send(std::string_view line) {
  outgoing_.append(line).push_back('\n');
  flush();
}

void LineSocket::flush() {
  while (state_ == State::open && !outgoing_.empty()) {
    const ssize_t sent = ::send(socket_, outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (sent < 0) return fail(errno);
    outgoing_.erase(0, static_cast<std::size_t>(sent));
  }
}

std::vector<std::string> LineSocket::receive() {
  std::vector<std::string> lines;
  std::array<char, 16384> piece{};
  while (state_ == State::open) {
    const ssize_t got = ::recv(socket_, piece.data(), piece.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got < 0) fail(errno);
    if (got == 0) state_ = State::ended;
    if (got <= 0) break;
    incoming_.append(piece.data(), static_cast<std::size_t>(got));
    take_lines(incoming_, lines);
    if (incoming_.size() > longest_line) fail(EMSGSIZE);
  }
  flush();
  return lines;
}

LineListener::LineListener() : socket_(make_listening_socket()) {}

int LineListener::port() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  // The port lies in the same place in both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

std::unique_ptr<LineSocket> LineListener::accept() const {
  const int connected = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  return connected < 0 ? nullptr : std::make_unique<LineSocket>(connected);
}

std::vector<std::string> addresses_of_this_node() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, FreeAddresses> owner(list);
  std::vector<std::string> addresses;
  std::vector<std::string> loopback;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const std::string address = numeric_address(*entry);
    if (address.empty()) continue;
    ((entry->ifa_flags & IFF_LOOPBACK) != 0 ? loopback : addresses).push_back(address);
  }
  addresses.insert(addresses.end(), loopback.begin(), loopback.end());
  return addresses;
}

std::unique_ptr<LineSocket> connect_to(const std::string& address, int port, std::chrono::milliseconds patience) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return nullptr;
  const std::unique_ptr<addrinfo, FreeAddresses> owner(found);
  const int socket = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return nullptr;
  auto connection = std::make_unique<LineSocket>(socket);
  const bool at_once = ::connect(socket, found->ai_addr, found->ai_addrlen) == 0;
  if (!at_once && (errno != EINPROGRESS || !finish_connecting(socket, patience))) return nullptr;
  return connection;
}

}  // namespace lockstep
