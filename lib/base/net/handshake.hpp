// How processes of a job find the one that listens over TCP (rank 0, or run_roles), and prove to each other that they
// are of one job, before anything that comes over the network is parsed.
//
//   listener  a challenge, to whoever comes
//   caller    a challenge of its own, and a sealed "hello"
//   listener  a sealed "welcome"
//
// Neither shows the token, and neither can be somebody who does not know it. Whoever stands between the two may pass on
// what they say, delay it or stop it. What he changes, adds, repeats or leaves out shows in the seals
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
  std::string challenge;  // of the process that connected: both ends know this connection by it
  std::unique_ptr<SealedSocket> socket;
};

// The listener's door, open for as long as this lives. Anyone may come. A peer has a few hundred bytes and a few
// seconds to prove himself. When there are too many, one chosen by chance has to go: so whoever wants to keep others
// out must come anew all the time.
class HandshakeServer {
 public:
  explicit HandshakeServer(std::string token);

  bool is_open() const { return listener_.is_open(); }
  int port() const { return listener_.port(); }
  // What to poll() for reading.
  std::vector<int> handles() const;
  // Lets people in and hears them, and returns soon; waits for at most `patience` until something happens.
  void serve(std::chrono::milliseconds patience);
  std::size_t unauthenticated() const { return unauthenticated_.size(); }
  // Who came with this challenge and has proven himself; null: nobody.
  std::unique_ptr<SealedSocket> take(const std::string& challenge);
  // All who have proven themselves and were not taken yet.
  std::vector<std::unique_ptr<SealedSocket>> take_all();

 private:
  struct UnauthenticatedPeer {
    std::unique_ptr<LineSocket> socket;
    std::string challenge;  // ours, to him
    Stopwatch since;
  };
  void wait(std::chrono::milliseconds patience) const;
  void accept_peers();
  bool may_stay(UnauthenticatedPeer& peer);
  void check_proof(UnauthenticatedPeer& peer, const std::string& said);

  std::string token_;
  std::size_t most_unauthenticated_;
  LineListener listener_;
  std::vector<UnauthenticatedPeer> unauthenticated_;
  std::vector<AuthenticatedPeer> proven_;
};

// Looks for the listener at `addresses`; comes again where it is turned away, until `patience` is over. Nothing: it is
// at none of them, or does not know the token.
std::optional<AuthenticatedPeer> connect_to_node(const std::vector<std::string>& addresses, int port,
                                                 const std::string& token, std::chrono::milliseconds patience);

}  // namespace lockstep
