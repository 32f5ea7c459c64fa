// A TCP port that accepts connections, and connecting to one.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/io/descriptor.hpp"
#include "base/net/line_socket.hpp"

namespace lockstep {

// Listens on all addresses of this node, on a port that the system chooses.
//
// Anyone who can reach the port may connect, any number of times. Each connection uses one of the process's file
// descriptors. Connections that would use the reserved ones are therefore closed at once. If the system has no
// descriptor left, the listener pauses.
class LineListener {
 public:
  LineListener();  // is_open() is false if it could not listen
  bool is_open() const { return socket_ >= 0; }
  int port() const;
  // For poll(). -1 during a pause, which poll() ignores: a listener that cannot accept stays readable.
  int handle() const { return is_paused() ? -1 : static_cast<int>(socket_); }
  // Null if no connection is waiting, or if none can be accepted.
  std::unique_ptr<LineSocket> accept(std::size_t longest_line);

 private:
  bool is_paused() const;

  Descriptor socket_;
  std::optional<Stopwatch> rest_;
};

// The number of files that this process may open, and how many of `max_files` are reserved for its own use.
int max_open_files();
int reserved_open_files(int max_files);

// Null with errno if nobody accepts the connection: ETIMEDOUT if there is no answer within `patience`.
std::unique_ptr<LineSocket> connect_to(const std::string& address, int port, std::chrono::milliseconds patience,
                                       std::size_t longest_line);

}  // namespace lockstep
