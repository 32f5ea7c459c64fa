// The messages between a server (remote_trainers.hpp) and its trainers (remote_server.hpp), in the order in which a
// trainer meets them:
//
//   trainer   hello       who it is, as JSON
//   server    offer       what is trained, as text of the server's program
//   trainer   ready       wants micro-batches
//   server    work        micro-batches, and the weights unless the trainer has them
//   trainer   push        a micro-batch's learning rate, gradients, batch statistics and metrics
//   server    work        the answer: likewise, with the next micro-batch if one is left
//   trainer   goodbye     why it leaves, as text
//   server    end         exit code and reason, as JSON: the trainer ends
//
// A trainer is ready again once it has pushed all of its micro-batches, in the order in which it got them. It sends
// nothing but a goodbye before it has read the answer to its last message. A message begins with its kind. Lengths are
// checked against what the two ends have agreed on; a message that does not fit ends the connection.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/net/sealed_frames.hpp"
#include "device/elements.hpp"

namespace lockstep {

enum class TrainerMessage : std::uint8_t { hello, offer, ready, work, push, goodbye, end };

// Of a message of work, before the weights if there are any.
struct WorkHeader {
  static constexpr std::int64_t most_micro_batches = 2;
  std::int64_t step = 0;
  std::int64_t age = 0;          // as in PushAnswer, and the next one
  std::int64_t is_applied = 0;   // 0 or 1
  std::int64_t has_weights = 0;  // 0 or 1
  std::int64_t micro_batches = 0;
  std::array<std::int64_t, most_micro_batches> micro_batch{};  // of the step
};

inline constexpr std::size_t longest_trainer_text = 4096;  // of hello, goodbye and end
inline constexpr std::size_t longest_offer = 64U << 20U;   // a network's description may be long
inline constexpr std::size_t message_kind_bytes = 1;

inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

inline std::span<const std::byte> bytes_of(const Tensor& values) {
  return std::as_bytes(std::span<const float>(elements(values)));
}

inline void send_message(SealedFrames& frames, TrainerMessage kind, std::span<const std::byte> first = {},
                         std::span<const std::byte> second = {}, std::span<const std::byte> third = {},
                         std::span<const std::byte> fourth = {}) {
  frames.send({std::as_bytes(std::span(&kind, 1)), first, second, third, fourth});
}

// A received message; nothing if it is empty.
struct ReceivedMessage {
  TrainerMessage kind;
  std::span<const std::byte> body;

  std::string text() const { return {reinterpret_cast<const char*>(body.data()), body.size()}; }
};
inline std::optional<ReceivedMessage> receive_message(SealedFrames& frames) {
  const std::optional<std::span<const std::byte>> bytes = frames.receive();
  if (!bytes || bytes->empty()) return std::nullopt;
  return ReceivedMessage{static_cast<TrainerMessage>(bytes->front()), bytes->subspan(message_kind_bytes)};
}

}  // namespace lockstep
