// A TCP port that others connect to, and connecting to one.
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

// On all addresses of this node and a port that the system chose.
//
// Whoever can reach the port may come, in any number, and each connection takes one of the files that this process may
// have open. So connections that would take the last of these are closed at once. While the system gives no file at all
// the listener rests.
class LineListener {
 public:
  LineListener();  // listens, or is_open() is false
  bool is_open() const { return socket_ >= 0; }
  int port() const;
  // For poll(); -1, which poll passes over, during a rest: a listener that cannot accept stays readable.
  int handle() const { return rests() ? -1 : static_cast<int>(socket_); }
  // Null: nobody is there, or nobody can be let in.
  std::unique_ptr<LineSocket> accept(std::size_t longest_line);

 private:
  bool rests() const;

  Descriptor socket_;
  std::optional<Stopwatch> rest_;
};

// How many files this process may have open, and how many of `most_files` nobody from outside gets.
int most_open_files();
int files_in_reserve(int most_files);

// Null where nobody takes the connection within `patience`.
std::unique_ptr<LineSocket> connect_to(const std::string& address, int port, std::chrono::milliseconds patience,
                                       std::size_t longest_line);

}  // namespace lockstep
