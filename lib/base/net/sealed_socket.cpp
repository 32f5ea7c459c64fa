#include "base/net/sealed_socket.hpp"

#include <optional>
#include <utility>

namespace lockstep {

SealedSocket::SealedSocket(std::unique_ptr<LineSocket> socket, const LinkSeal& seal)
    : socket_(std::move(socket)), seal_(seal) {}

SealedSocket::State SealedSocket::state() const {
  if (is_forged_) return State::forged;
  switch (socket_->state()) {
    case LineSocket::State::open:
      return State::open;
    case LineSocket::State::ended:
      return State::ended;
    case LineSocket::State::unreachable:
      break;
  }
  return State::unreachable;
}

void SealedSocket::send(std::string_view text) { socket_->send(seal_.seal(text)); }

std::vector<std::string> SealedSocket::receive() {
  std::vector<std::string> texts;
  if (state() != State::open) return texts;
  for (const std::string& line : socket_->receive()) {
    std::optional<std::string> text = seal_.unseal(line);
    if (!text) {
      is_forged_ = true;
      break;
    }
    texts.push_back(std::move(*text));
  }
  return texts;
}

}  // namespace lockstep
