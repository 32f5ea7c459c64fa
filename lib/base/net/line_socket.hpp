// A TCP connection that carries lines of text between two nodes, and never makes its caller wait.
//
// Whatever the other end sends, a call takes in a bounded number of bytes and a connection keeps a bounded number.
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
  // Takes over a connected socket. A line that is longer than `longest_line` bytes, its end not counted, ends the
  // connection.
  LineSocket(int connected, std::size_t longest_line);
  void set_longest_line(std::size_t bytes) { longest_line_ = bytes; }

  // What the other end does not take yet is kept here, and sent when receive() is called: where has_unsent(), poll()
  // for writing.
  void send(std::string_view line);
  bool has_unsent() const { return !outgoing_.empty(); }
  // Whole lines that have arrived, without their ends. There may be more: poll() then says so of handle().
  std::vector<std::string> receive();

  enum class State : std::uint8_t {
    open,
    ended,       // the other process closed it, or ended: its system said so
    unreachable  // nothing comes through any more, or what came was no line
  };
  State state() const { return state_; }
  int handle() const { return socket_; }

 private:
  void flush();
  void fail(int error);
  void take_lines(std::string_view piece, std::vector<std::string>& lines);

  Descriptor socket_;
  std::size_t longest_line_;
  State state_ = State::open;
  std::string incoming_;  // a line without its end
  std::string outgoing_;
};

}  // namespace lockstep
