// Messages between two ranks, blocking or with request handles.
//
//   send<float>(world, values, 1, tag);                              on rank 0
//   const MessageInfo message = probe(world, any_source, tag);       on rank 1: the length is not known in advance
//   std::vector<float> values(message.count<float>());
//   receive<float>(world, values, message.peer, message.tag);
//
// Messages from one rank to another with the same tag arrive in order. A waiting rank sleeps between polls, as in the
// collectives of Communicator. Only the main thread communicates. The caller sets the phase in which a hang is reported
// (rank_status::enter). Ranks are those of the given communicator. Tags are 0 to largest_tag().
//
// All functions throw Error if the rank or the tag does not exist, or if a message has more elements than an MPI count
// holds (2^31 - 1).
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/element_type.hpp"

namespace lockstep {

inline constexpr int any_source = MPI_ANY_SOURCE;
inline constexpr int any_tag = MPI_ANY_TAG;
int largest_tag();

// A message that was sent or received, or that waits to be received.
struct MessageInfo {
  int peer = any_source;  // the other rank
  int tag = any_tag;
  std::int64_t bytes = 0;

  // Number of elements. Throws Error if the message is no whole number of them, because it was sent as another type.
  template <MessageElement T>
  std::size_t count() const {
    return count_of(sizeof(T));
  }
  std::size_t count_of(std::size_t element_size) const;

  bool operator==(const MessageInfo&) const = default;
};

// Throws Error unless a buffer of `count` elements can hold the message.
void require_fits(const MessageInfo& message, std::size_t count, std::size_t element_size);

// A message on its way: owns the MPI request. The buffer belongs to the request until it is complete. A request that is
// moved from, or complete, is empty. The destructor of an active receive cancels it; a message that has begun to arrive
// is lost. The destructor of an active send waits until the message has left the buffer. While an exception unwinds the
// stack, both wait for at most 100 ms, because the other rank may never answer.
class MessageRequest {
 public:
  MessageRequest() = default;
  MessageRequest(MessageRequest&& other) noexcept { swap(other); }
  MessageRequest& operator=(MessageRequest&& other) noexcept {
    MessageRequest ended(std::move(other));
    swap(ended);
    return *this;
  }
  ~MessageRequest();

  bool is_active() const { return handle_ != MPI_REQUEST_NULL; }
  // Of an active request. The message, once it is complete. Throws Error if the message is longer than the buffer, or
  // no whole number of the buffer's elements. The request is empty afterwards, also if it throws.
  MessageInfo wait();
  std::optional<MessageInfo> test();  // nothing if the message is not complete

  // For start_send() and start_receive().
  static MessageRequest sending(const Communicator& ranks, const void* values, std::size_t count,
                                const ElementType& type, int destination, int tag);
  static MessageRequest receiving(const Communicator& ranks, void* buffer, std::size_t count, const ElementType& type,
                                  int source, int tag);

 private:
  MessageRequest(const MessageInfo& buffer, std::size_t element_size);
  void swap(MessageRequest& other) noexcept;

  MPI_Request handle_ = MPI_REQUEST_NULL;
  MessageInfo buffer_;            // what is sent, or how much is received at most, and from whom
  std::size_t element_size_ = 0;  // of a receive; 0: a send
  int exceptions_ = 0;            // in flight when the message was started
};

// Waits for all active requests. Returns their messages, in the order of the requests.
std::vector<MessageInfo> wait_all(std::span<MessageRequest> requests);

struct CompletedMessage {
  std::size_t index;  // of the request
  MessageInfo message;
};
// Waits until one of the active requests is complete. Nothing if all are empty.
std::optional<CompletedMessage> wait_any(std::span<MessageRequest> requests);

// Not collective. Starts to send `values`. They must not change until the request is complete.
template <MessageElement T>
MessageRequest start_send(const Communicator& ranks, std::span<const T> values, int destination, int tag) {
  return MessageRequest::sending(ranks, values.data(), values.size(), element_type<T>(), destination, tag);
}

// Starts to receive a message of at most `buffer` elements.
template <MessageElement T>
MessageRequest start_receive(const Communicator& ranks, std::span<T> buffer, int source, int tag) {
  return MessageRequest::receiving(ranks, buffer.data(), buffer.size(), element_type<T>(), source, tag);
}

// Returns once the values may change. That may be only after the other rank has begun to receive them. To send to
// itself, a rank starts one of the two messages instead.
template <MessageElement T>
void send(const Communicator& ranks, std::span<const T> values, int destination, int tag) {
  start_send<T>(ranks, values, destination, tag).wait();
}

// Waits for a message, without receiving it.
MessageInfo probe(const Communicator& ranks, int source, int tag);
std::optional<MessageInfo> try_probe(const Communicator& ranks, int source, int tag);  // without waiting

// Throws Error as MessageRequest::wait(). The message can then still be received, with another buffer.
template <MessageElement T>
MessageInfo receive(const Communicator& ranks, std::span<T> buffer, int source, int tag) {
  const MessageInfo message = probe(ranks, source, tag);
  require_fits(message, buffer.size(), sizeof(T));
  return start_receive<T>(ranks, buffer, message.peer, message.tag).wait();
}

}  // namespace lockstep
