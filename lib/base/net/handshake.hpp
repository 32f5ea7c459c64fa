// The handshake between the process of a job that listens over TCP (rank 0, or run_roles) and those that connect to it.
// Both ends prove that they belong to the same job before anything from the network is parsed.
//
//   listener  a challenge, to any peer
//   caller    a challenge of its own, and a sealed "hello"
//   listener  a sealed "welcome"
//
// Neither message reveals the token, and neither can come from a process that does not know it. An attacker between the
// two can forward, delay or block messages. Changed, added, repeated or missing messages break the seals
// (base/net/link_seal).
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/net/line_listener.hpp"
#include "base/net/line_socket.hpp"
#include "base/net/sealed_socket.hpp"

namespace lockstep {

struct AuthenticatedPeer {
  std::string challenge;  // of the process that connected; identifies the connection at both ends
  std::unique_ptr<SealedSocket> socket;
};

// Accepts connections and authenticates peers for as long as it lives. Anyone may connect. An unauthenticated peer gets
// a few hundred bytes and a few seconds for its proof. If there are too many, a random one is dropped. An attacker who
// wants to keep others out must therefore reconnect all the time.
class HandshakeServer {
 public:
  explicit HandshakeServer(std::string token);

  bool is_open() const { return listener_.is_open(); }
  int port() const { return listener_.port(); }
  // The file descriptors to poll() for reading.
  std::vector<int> handles() const;
  // Accepts connections and reads the peers' messages. Waits at most `patience` for an event.
  void serve(std::chrono::milliseconds patience);
  std::size_t unauthenticated() const { return unauthenticated_.size(); }
  // The authenticated peer with this challenge; null if there is none.
  std::unique_ptr<SealedSocket> take(const std::string& challenge);
  // All authenticated peers that were not taken yet.
  std::vector<std::unique_ptr<SealedSocket>> take_all();

 private:
  struct UnauthenticatedPeer {
    std::unique_ptr<LineSocket> socket;
    std::string challenge;  // ours, sent to this peer
    Stopwatch since;
  };
  void wait(std::chrono::milliseconds patience) const;
  void accept_peers();
  bool may_stay(UnauthenticatedPeer& peer);
  void check_proof(UnauthenticatedPeer& peer, const std::string& said);

  std::string token_;
  std::size_t max_unauthenticated_;
  LineListener listener_;
  std::vector<UnauthenticatedPeer> unauthenticated_;
  std::vector<AuthenticatedPeer> proven_;
};

// Connects to the listener at one of `addresses`. Tries again where it is turned away or gets no answer, until
// `patience` is over: a listener may be busy, stopped, or flooded by strangers. Nothing if all addresses refuse the
// connection, or a listener there does not know the token.
std::optional<AuthenticatedPeer> connect_to_node(const std::vector<std::string>& addresses, int port,
                                                 const std::string& token, std::chrono::milliseconds patience);

}  // namespace lockstep
