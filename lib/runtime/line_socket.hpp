// A TCP connection that carries lines of text between the watchers of two nodes, and never makes its caller wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"

namespace lockstep {

class LineSocket {
 public:
  // Takes over a connected socket.
  explicit LineSocket(int connected);

  // Lines that the other end does not take yet are kept here: send little that is not answered.
  void send(std::string_view line);
  // The whole lines that have arrived, their ends taken off.
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

  Descriptor socket_;
  State state_ = State::open;
  std::string incoming_;
  std::string outgoing_;
};

// A socket that others connect to, on all addresses of this node and a port that the system chose.
class LineListener {
 public:
  LineListener();  // listens, or is_open() is false
  bool is_open() const { return socket_ >= 0; }
  int handle() const { return socket_; }
  int port() const;
  std::unique_ptr<LineSocket> accept() const;  // null: nobody is there

 private:
  Descriptor socket_;
};

// Addresses by which other nodes may reach this one; the loopback, which only this node can use, comes last.
std::vector<std::string> addresses_of_this_node();

// Null where nobody takes the connection within `patience`.
std::unique_ptr<LineSocket> connect_to(const std::string& address, int port, std::chrono::milliseconds patience);

}  // namespace lockstep
