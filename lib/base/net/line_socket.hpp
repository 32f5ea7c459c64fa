// A TCP connection that carries lines of text between two nodes, and never blocks its caller.
//
// Whatever the other end sends, a call reads a bounded number of bytes and a connection buffers a bounded number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/io/descriptor.hpp"

namespace lockstep {

class LineSocket {
 public:
  // Takes ownership of a connected socket. A line longer than `longest_line` bytes, without its end, closes the
  // connection.
  LineSocket(int connected, std::size_t longest_line);
  void set_longest_line(std::size_t bytes) { longest_line_ = bytes; }

  // Buffers what the other end does not accept yet; receive() sends it. If has_unsent(), poll() for writing.
  void send(std::string_view line);
  bool has_unsent() const { return !outgoing_.empty(); }
  // The complete lines that have arrived, without their ends. If there is more, handle() polls as readable.
  std::vector<std::string> receive();

  enum class State : std::uint8_t {
    open,
    ended,       // the other process closed it or ended; its kernel reported this
    unreachable  // the connection timed out or failed, or a line was too long
  };
  State state() const { return state_; }
  int handle() const { return socket_; }

  // Closes this and passes its socket on; -1 if it is not open, or if a part of a line was not sent or not taken.
  Descriptor take_descriptor();

 private:
  void flush();
  void fail(int error);
  void take_lines(std::string_view piece, std::vector<std::string>& lines);

  Descriptor socket_;
  std::size_t longest_line_;
  State state_ = State::open;
  std::string incoming_;  // an incomplete line
  std::string outgoing_;
};

}  // namespace lockstep
