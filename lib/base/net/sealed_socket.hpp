// A connection between two processes of one job. Each has proven to the other that it knows the job's token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/io/descriptor.hpp"
#include "base/net/line_socket.hpp"
#include "base/net/link_seal.hpp"

namespace lockstep {

class SealedSocket {
 public:
  SealedSocket(std::unique_ptr<LineSocket> socket, const LinkSeal& seal);
  // Until this is called, the socket's previous limit applies.
  void set_longest_text(std::size_t bytes) { socket_->set_longest_line(bytes + LinkSeal::added_length); }

  // As LineSocket's, with a seal on each line.
  void send(std::string_view text);
  std::vector<std::string> receive();

  enum class State : std::uint8_t {
    open,
    ended,
    unreachable,
    forged  // a line arrived that the other end did not send, or not at this position: nothing more is read
  };
  State state() const;
  int handle() const { return socket_->handle(); }
  bool has_unsent() const { return socket_->has_unsent(); }

  // For SealedFrames, which continues the connection. The seal knows the position in it.
  Descriptor take_descriptor() { return socket_->take_descriptor(); }
  const LinkSeal& seal() const { return seal_; }

 private:
  std::unique_ptr<LineSocket> socket_;
  LinkSeal seal_;
  bool is_forged_ = false;
};

}  // namespace lockstep
