// Rank 0's door, held open for as long as a test likes, and those who come to it uninvited.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/net/handshake.hpp"
#include "base/net/link_seal.hpp"
#include "support/program.hpp"

namespace lockstep {

class Door {
 public:
  const std::string& token() const { return token_; }
  int port() const { return handshakes_.port(); }
  std::size_t max_unauthenticated() const { return max_unauthenticated_; }
  // Whether so many unauthenticated are there at a time, soon.
  bool fills(std::size_t unauthenticated) const {
    const Stopwatch watch;
    while (max_unauthenticated_ < unauthenticated && watch.seconds() < 10) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return max_unauthenticated_ >= unauthenticated;
  }
  // Nobody is let in any more.
  HandshakeServer& close() {
    porter_.request_stop();
    if (porter_.joinable()) porter_.join();
    return handshakes_;
  }

 private:
  std::string token_ = draw_secret();
  HandshakeServer handshakes_{token_};
  std::atomic<std::size_t> max_unauthenticated_ = 0;
  std::jthread porter_{[this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      handshakes_.serve(std::chrono::milliseconds(5));
      max_unauthenticated_ = std::max(max_unauthenticated_.load(), handshakes_.unauthenticated());
    }
  }};
};

// tests/support/network/unauthenticated_program.cpp at a port of this machine.
class UnauthenticatedPeers {
 public:
  UnauthenticatedPeers(int port, int seconds, std::vector<std::string> ways)
      : thread_([this, port, seconds, ways = std::move(ways)] {
          std::vector<std::string> words = {built_program("unauthenticated_program"), std::to_string(port),
                                            std::to_string(seconds)};
          words.insert(words.end(), ways.begin(), ways.end());
          said_ = run_program(words).output;
        }) {}

  struct Told {
    int connections = 0;
    int answers = 0;
  };
  // Until they are done.
  Told wait() {
    thread_.join();
    Told told;
    const std::size_t comma = said_.find(", ");
    if (comma == std::string::npos) return told;
    told.connections = std::atoi(said_.c_str() + comma + 2);
    told.answers = std::atoi(said_.c_str() + said_.find(", ", comma + 1) + 2);
    return told;
  }

 private:
  std::string said_;
  std::jthread thread_;
};

inline double resident_megabytes() {
  std::ifstream file("/proc/self/statm");
  double all = 0;
  double resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
}

}  // namespace lockstep
