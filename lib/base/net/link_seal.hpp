// What makes a line between two nodes believable: a seal that only a process of the same job can set.
//
// The process that listens draws a token for the job. The others get it from their launcher (MPI, or srun); it never
// goes over a connection. Each end of a connection names a challenge of its own, drawn for it; the token and both
// challenges make two keys, one for each direction. A line's seal is a keyed hash (libsodium's crypto_auth,
// HMAC-SHA-512-256) of the line and of how many lines went before it. So whoever sets a right seal knows the token and
// has seen the other's challenge, here and now. A line that was changed, left out, repeated, sent back or carried over
// from another connection has a wrong seal. What is said is not secret.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

// The token of a job, or the challenge of one end of a connection: 32 bytes by chance, as text.
inline constexpr std::size_t secret_text_length = 64;
std::string draw_secret();
bool is_secret_text(std::string_view text);

class LinkSeal {
 public:
  enum class Side : std::uint8_t { listener, caller };

  // All three texts are such as draw_secret() gives. Throws Error(other) on a `token` that is not.
  LinkSeal(std::string_view token, std::string_view listener_challenge, std::string_view caller_challenge, Side own);

  // The next line to send: its seal, a space, `text`.
  static constexpr std::size_t added_length = 65;
  std::string seal(std::string_view text);
  // The text of the next line that came; nothing where it is not the one that the other end sealed.
  std::optional<std::string> unseal(std::string_view line);

 private:
  struct Direction {
    std::array<unsigned char, 32> key{};
    std::uint64_t lines = 0;
  };
  Direction outgoing_;
  Direction incoming_;
};

}  // namespace lockstep
