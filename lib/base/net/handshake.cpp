#include "base/net/handshake.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <string_view>
#include <thread>
#include <utility>

#include "base/net/link_seal.hpp"

namespace lockstep {
namespace {

using namespace std::chrono_literals;
using Side = LinkSeal::Side;

constexpr std::string_view hello_word = "hello";
constexpr std::string_view welcome_word = "welcome";
constexpr std::size_t hello_length = secret_text_length + 1 + LinkSeal::added_length + hello_word.size();
constexpr std::size_t longest_greeting = 2 * hello_length;  // from either side

// A small part of the process's limit on open files.
std::size_t max_unauthenticated() { return static_cast<std::size_t>(std::clamp(max_open_files() / 8, 8, 128)); }

// The first received line. Nothing if none arrives in time.
std::optional<std::string> hear(LineSocket& socket, const Stopwatch& watch, std::chrono::duration<double> patience) {
  while (watch.seconds() < patience.count() && socket.state() == LineSocket::State::open) {
    pollfd wait{socket.handle(), POLLIN, 0};
    ::poll(&wait, 1, 100);
    std::vector<std::string> lines = socket.receive();
    if (!lines.empty()) return std::move(lines.front());
  }
  return std::nullopt;
}

enum class Answer : std::uint8_t {
  welcome,
  none,    // perhaps the listener has too many unauthenticated peers, or is stopped
  foreign  // the listener does not know the token
};

Answer connect_once(LineSocket& socket, const std::string& token, const std::string& own_challenge,
                    std::optional<LinkSeal>& seal) {
  constexpr auto patience = 5s;
  const Stopwatch watch;
  const std::optional<std::string> challenge = hear(socket, watch, patience);
  if (!challenge) return Answer::none;
  if (!is_secret_text(*challenge)) return Answer::foreign;
  seal.emplace(token, *challenge, own_challenge, Side::caller);
  socket.send(fmt::format("{} {}", own_challenge, seal->seal(hello_word)));
  const std::optional<std::string> answer = hear(socket, watch, patience);
  if (!answer) return Answer::none;
  return seal->unseal(*answer) == welcome_word ? Answer::welcome : Answer::foreign;
}

}  // namespace

HandshakeServer::HandshakeServer(std::string token)
    : token_(std::move(token)), max_unauthenticated_(max_unauthenticated()) {}

void HandshakeServer::serve(std::chrono::milliseconds patience) {
  wait(patience);
  std::erase_if(unauthenticated_, [this](UnauthenticatedPeer& peer) { return !may_stay(peer); });
  accept_peers();
}

void HandshakeServer::wait(std::chrono::milliseconds patience) const {
  std::vector<pollfd> waits;
  for (const int handle : handles()) waits.push_back({handle, POLLIN, 0});
  ::poll(waits.data(), waits.size(), static_cast<int>(patience.count()));
}

std::vector<int> HandshakeServer::handles() const {
  std::vector<int> handles{listener_.handle()};
  for (const UnauthenticatedPeer& peer : unauthenticated_) handles.push_back(peer.socket->handle());
  return handles;
}

// Accepts a few at a time, so that peers are read before they may be dropped.
void HandshakeServer::accept_peers() {
  constexpr int at_a_time = 8;
  for (int i = 0; i < at_a_time; ++i) {
    std::unique_ptr<LineSocket> socket = listener_.accept(longest_greeting);
    if (socket == nullptr) return;
    if (unauthenticated_.size() >= max_unauthenticated_) {
      std::swap(unauthenticated_[std::random_device()() % unauthenticated_.size()], unauthenticated_.back());
      unauthenticated_.pop_back();
    }
    unauthenticated_.push_back({std::move(socket), draw_secret(), {}});
    unauthenticated_.back().socket->send(unauthenticated_.back().challenge);
  }
}

bool HandshakeServer::may_stay(UnauthenticatedPeer& peer) {
  constexpr double patience_seconds = 3;
  const std::vector<std::string> said = peer.socket->receive();
  if (!said.empty()) {
    check_proof(peer, said.front());
    return false;  // it is authenticated now, or has used its only attempt
  }
  return peer.socket->state() == LineSocket::State::open && peer.since.seconds() < patience_seconds;
}

void HandshakeServer::check_proof(UnauthenticatedPeer& peer, const std::string& said) {
  if (said.size() != hello_length || said[secret_text_length] != ' ') return;
  const std::string challenge = said.substr(0, secret_text_length);
  if (!is_secret_text(challenge)) return;
  LinkSeal seal(token_, peer.challenge, challenge, Side::listener);
  if (seal.unseal(std::string_view(said).substr(secret_text_length + 1)) != hello_word) return;
  proven_.push_back({challenge, std::make_unique<SealedSocket>(std::move(peer.socket), seal)});
  proven_.back().socket->send(welcome_word);
}

std::unique_ptr<SealedSocket> HandshakeServer::take(const std::string& challenge) {
  const auto place = std::ranges::find(proven_, challenge, &AuthenticatedPeer::challenge);
  return place == proven_.end() ? nullptr : std::move(place->socket);
}

std::vector<std::unique_ptr<SealedSocket>> HandshakeServer::take_all() {
  std::vector<std::unique_ptr<SealedSocket>> sockets;
  for (AuthenticatedPeer& one : std::exchange(proven_, {})) {
    if (one.socket != nullptr) sockets.push_back(std::move(one.socket));
  }
  return sockets;
}

std::optional<AuthenticatedPeer> connect_to_node(const std::vector<std::string>& addresses, int port,
                                                 const std::string& token, std::chrono::milliseconds patience) {
  const Stopwatch watch;
  const auto is_over = [&] { return watch.milliseconds() > static_cast<double>(patience.count()); };
  bool may_come_in = true;
  while (std::exchange(may_come_in, false)) {
    for (const std::string& address : addresses) {
      if (is_over()) return std::nullopt;
      std::unique_ptr<LineSocket> socket = connect_to(address, port, 1s, longest_greeting);
      if (socket == nullptr) {
        may_come_in = may_come_in || errno == ETIMEDOUT;
        continue;
      }
      const std::string challenge = draw_secret();
      std::optional<LinkSeal> seal;
      const Answer answer = connect_once(*socket, token, challenge, seal);
      if (answer == Answer::welcome)
        return AuthenticatedPeer{challenge, std::make_unique<SealedSocket>(std::move(socket), *seal)};
      may_come_in = may_come_in || answer == Answer::none;
    }
    std::this_thread::sleep_for(5ms);
  }
  return std::nullopt;
}

}  // namespace lockstep
