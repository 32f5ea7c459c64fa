// Message authentication for the lines between two nodes: only a process of the same job can compute a line's seal.
//
// The process that listens draws a token for the job. The others get it from their launcher (MPI, or srun); it is never
// sent over a connection. Each end of a connection draws a challenge for it. The token and both challenges determine
// two keys, one for each direction. A line's seal is a keyed hash (libsodium's crypto_auth, HMAC-SHA-512-256) of the
// line and of the number of lines before it. A valid seal therefore proves that its sender knows the token and has seen
// the other's challenge on this connection. A line that was changed, dropped, repeated, reflected or copied from
// another connection breaks the seal. The content is not encrypted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

// The token of a job, or the challenge of one end of a connection: 32 random bytes, as hexadecimal text.
inline constexpr std::size_t secret_text_length = 64;
std::string draw_secret();
bool is_secret_text(std::string_view text);

class LinkSeal {
 public:
  enum class Side : std::uint8_t { listener, caller };

  // All three texts have the form of draw_secret()'s. Throws Error(other) if `token` does not.
  LinkSeal(std::string_view token, std::string_view listener_challenge, std::string_view caller_challenge, Side own);

  // The next line to send: its seal, a space, `text`.
  static constexpr std::size_t added_length = 65;
  std::string seal(std::string_view text);
  // The text of the next received line. Nothing if it is not the line that the other end sealed next.
  std::optional<std::string> unseal(std::string_view line);

  // The same for a message of any bytes, such as gradients, which consists of these parts: its seal, and whether it is
  // the next message that the other end sealed. Messages are counted with the lines. Because messages may be large, the
  // keyed hash is libsodium's fastest, Poly1305 (crypto_onetimeauth). It wants a new key for each message, which is
  // derived from the key of the direction and the number of the message.
  using Tag = std::array<unsigned char, 16>;
  Tag tag(std::initializer_list<std::span<const std::byte>> parts);
  bool is_next(const Tag& tag, std::span<const std::byte> message);

 private:
  struct Direction {
    std::array<unsigned char, 32> key{};
    std::uint64_t lines = 0;
  };
  Direction outgoing_;
  Direction incoming_;
};

}  // namespace lockstep
