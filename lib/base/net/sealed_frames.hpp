// A connection between two processes of one job that carries messages of any bytes, such as gradients: what
// base/net/sealed_socket is for lines of text.
//
//   message   its length (8 bytes), its seal (16 bytes), then its bytes
//
// A seal proves that the other end sent these bytes at this position, as that of a line does (base/net/link_seal).
// Nothing of a message is used before its seal is checked, except that its length may not exceed the given limit. So a
// connection buffers at most one incoming message. Calls never block.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/io/descriptor.hpp"
#include "base/net/link_seal.hpp"
#include "base/net/sealed_socket.hpp"

namespace lockstep {

class SealedFrames {
 public:
  // Takes over a connection after its handshake. The process that connected sends the first message, because the other
  // one knows only then that its greeting has been read.
  SealedFrames(std::unique_ptr<SealedSocket> socket, std::size_t longest_message);
  void set_longest_message(std::size_t bytes) { longest_message_ = bytes; }
  // From now on, the other end may be busy for any time without reading. Otherwise the connection ends if it takes
  // nothing for eight seconds. If its node goes down while it has not taken all, that is found out after about 15
  // minutes.
  void wait_for_busy_peer();

  // Sends one message, which consists of these parts. Buffers what the other end does not accept yet; receive() sends
  // it. If has_unsent(), poll() for writing.
  void send(std::initializer_list<std::span<const std::byte>> parts);
  bool has_unsent() const { return sent_ < outgoing_.size(); }
  // The next message, if all of it has arrived. It is valid until the next call.
  std::optional<std::span<const std::byte>> receive();

  SealedSocket::State state() const { return state_; }
  int handle() const { return socket_; }

 private:
  using Header = std::array<std::byte, sizeof(std::uint64_t) + sizeof(LinkSeal::Tag)>;

  void flush();
  bool fill(std::span<std::byte> buffer, std::size_t before);
  bool begin_message();
  void fail(int error);

  Descriptor socket_;
  LinkSeal seal_;
  std::size_t longest_message_;
  SealedSocket::State state_ = SealedSocket::State::open;
  Header header_{};
  std::vector<std::byte> incoming_;  // of the message whose header has arrived
  std::size_t received_ = 0;         // bytes of header and message
  std::vector<std::byte> outgoing_;
  std::size_t sent_ = 0;  // bytes of `outgoing_`
};

}  // namespace lockstep
