#include "base/net/sealed_frames.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace lockstep {

using State = SealedSocket::State;

SealedFrames::SealedFrames(std::unique_ptr<SealedSocket> socket, std::size_t longest_message)
    : socket_(socket->take_descriptor()), seal_(socket->seal()), longest_message_(longest_message) {
  if (socket_ < 0) state_ = State::unreachable;
}

void SealedFrames::wait_for_busy_peer() {
  const int system_default = 0;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_USER_TIMEOUT, &system_default, sizeof system_default);
}

void SealedFrames::fail(int error) { state_ = error == ECONNRESET ? State::ended : State::unreachable; }

void SealedFrames::send(std::initializer_list<std::span<const std::byte>> parts) {
  std::uint64_t length = 0;
  for (const auto& part : parts) length += part.size();
  const LinkSeal::Tag tag = seal_.tag(parts);
  const auto append = [this](std::span<const std::byte> bytes) {
    outgoing_.insert(outgoing_.end(), bytes.begin(), bytes.end());
  };
  outgoing_.reserve(outgoing_.size() + header_.size() + length);
  append(std::as_bytes(std::span(&length, 1)));
  append(std::as_bytes(std::span(tag)));
  for (const auto& part : parts) append(part);
  flush();
}

// If the other end has closed the connection, its last messages may still be there to read. So receive() finds the end.
void SealedFrames::flush() {
  while (state_ == State::open && has_unsent()) {
    const ssize_t sent = ::send(socket_, outgoing_.data() + sent_, outgoing_.size() - sent_, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) break;
    if (sent < 0) return fail(errno);
    sent_ += static_cast<std::size_t>(sent);
  }
  outgoing_.clear();
  sent_ = 0;
}

// Receives into `buffer`, which follows `before` bytes of the message. Whether it is full.
bool SealedFrames::fill(std::span<std::byte> buffer, std::size_t before) {
  while (state_ == State::open && received_ < before + buffer.size()) {
    const std::size_t there = received_ - before;
    const ssize_t got = ::recv(socket_, buffer.data() + there, buffer.size() - there, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (got < 0) fail(errno);
    if (got == 0) state_ = State::ended;
    if (got > 0) received_ += static_cast<std::size_t>(got);
  }
  return state_ == State::open;
}

// Whether the header has arrived. Makes room for its message.
bool SealedFrames::begin_message() {
  if (received_ > header_.size()) return true;
  if (received_ < header_.size() && !fill(header_, 0)) return false;
  std::uint64_t length = 0;
  std::memcpy(&length, header_.data(), sizeof length);
  if (length > longest_message_) {
    state_ = State::forged;
    return false;
  }
  incoming_.resize(length);
  return true;
}

std::optional<std::span<const std::byte>> SealedFrames::receive() {
  flush();
  if (state_ != State::open || !begin_message() || !fill(incoming_, header_.size())) return std::nullopt;
  received_ = 0;
  LinkSeal::Tag tag{};
  std::memcpy(tag.data(), header_.data() + sizeof(std::uint64_t), tag.size());
  if (!seal_.is_next(tag, incoming_)) {
    state_ = State::forged;
    return std::nullopt;
  }
  return incoming_;
}

}  // namespace lockstep
