// How the nodes of a job find rank 0 over TCP and prove to each other that they are of one job, before anything that
// comes over the network is parsed.
//
//   rank 0     a challenge, to whoever comes
//   the other  a challenge of its own, and a sealed "knock"
//   rank 0     a sealed "welcome"
//
// Neither shows the token, and neither can be somebody who does not know it. Whoever stands between the two may pass on
// what they say, delay it or stop it. What he changes, adds, repeats or leaves out shows in the seals
// (runtime/link/link_seal).
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
#include "runtime/link/sealed_socket.hpp"

namespace lockstep {

struct Greeted {
  std::string challenge;  // of the node that knocked: both ends know this connection by it
  std::unique_ptr<SealedSocket> socket;
};

// Rank 0's door, open for as long as this lives. Anyone may come. A stranger has a few hundred bytes and a few seconds
// to prove himself. When there are too many, one chosen by chance has to go: so whoever wants to keep others out must
// come anew all the time.
class Reception {
 public:
  explicit Reception(std::string token);

  int port() const { return listener_.port(); }
  // Lets people in and hears them, and returns soon; waits for at most `patience` until something happens.
  void serve(std::chrono::milliseconds patience);
  std::size_t strangers() const { return strangers_.size(); }
  // Who came with this challenge and has proven himself; null: nobody.
  std::unique_ptr<SealedSocket> take(const std::string& challenge);

 private:
  struct Stranger {
    std::unique_ptr<LineSocket> socket;
    std::string challenge;  // rank 0's, to him
    Stopwatch since;
  };
  void wait(std::chrono::milliseconds patience) const;
  void let_in();
  bool may_stay(Stranger& stranger);
  void hear_proof(Stranger& stranger, const std::string& said);

  std::string token_;
  std::size_t most_strangers_;
  LineListener listener_;
  std::vector<Stranger> strangers_;
  std::vector<Greeted> proven_;
};

// Looks for rank 0 at `addresses`; comes again where it is turned away, until `patience` is over. Nothing: rank 0 is at
// none of them, or does not know the token.
std::optional<Greeted> knock(const std::vector<std::string>& addresses, int port, const std::string& token,
                             std::chrono::milliseconds patience);

}  // namespace lockstep
