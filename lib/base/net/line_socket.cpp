#include "base/net/line_socket.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace lockstep {
namespace {

void set(int socket, int level, int option, int value) { ::setsockopt(socket, level, option, &value, sizeof value); }

// Detects a node that went down, which sends nothing. For a stopped process, its kernel still answers.
void set_keepalive(int socket) {
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 2);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 8000);
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
}

}  // namespace

LineSocket::LineSocket(int connected, std::size_t longest_line) : socket_(connected), longest_line_(longest_line) {
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

// Moves complete lines to the end of `lines`, and keeps the rest.
void LineSocket::take_lines(std::string_view piece, std::vector<std::string>& lines) {
  while (state_ == State::open) {
    const std::size_t end = piece.find('\n');
    incoming_.append(piece.substr(0, end));
    if (incoming_.size() > longest_line_) return fail(EMSGSIZE);
    if (end == std::string_view::npos) return;
    lines.push_back(std::move(incoming_));
    incoming_.clear();
    piece.remove_prefix(end + 1);
  }
}

Descriptor LineSocket::take_descriptor() {
  const bool is_whole = state_ == State::open && incoming_.empty() && outgoing_.empty();
  state_ = State::ended;
  return is_whole ? std::move(socket_) : Descriptor(-1);
}

std::vector<std::string> LineSocket::receive() {
  constexpr int pieces_a_call = 4;
  std::vector<std::string> lines;
  std::array<char, 16384> room{};
  for (int piece = 0; piece < pieces_a_call && state_ == State::open; ++piece) {
    // Reads no more than the limit on a line, so that a peer with a small limit cannot send much.
    const ssize_t got = ::recv(socket_, room.data(), std::min(room.size(), longest_line_ + 1), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got < 0) fail(errno);
    if (got == 0) state_ = State::ended;
    if (got <= 0) break;
    take_lines({room.data(), static_cast<std::size_t>(got)}, lines);
  }
  flush();
  return lines;
}

}  // namespace lockstep
