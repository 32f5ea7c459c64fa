#include "comm/point_to_point.hpp"

#include <chrono>
#include <exception>
#include <limits>

#include "comm/check_mpi.hpp"
#include "comm/patience.hpp"

namespace lockstep {
namespace {

void require_rank(const Communicator& ranks, int rank) {
  require(rank >= 0 && rank < ranks.size(), Failure::other,
          "cannot exchange a message with rank {}. The communicator has ranks 0 to {}.", rank, ranks.size() - 1);
}

void require_tag(int tag) {
  require(tag >= 0 && tag <= largest_tag(), Failure::other,
          "cannot exchange a message with tag {}. This MPI has tags 0 to {}.", tag, largest_tag());
}

int mpi_count(std::size_t count) {
  constexpr int most = std::numeric_limits<int>::max();
  require(count <= std::size_t{most}, Failure::other,
          "cannot exchange a message of {} elements. MPI allows {}. Split it into several messages.", count, most);
  return static_cast<int>(count);
}

MessageInfo message_of(const MPI_Status& status) {
  MPI_Count bytes = 0;
  check_mpi(MPI_Get_elements_x(&status, MPI_BYTE, &bytes), "tell the length of a message");
  return {status.MPI_SOURCE, status.MPI_TAG, bytes};
}

bool is_truncation(int code) {
  int error_class = MPI_SUCCESS;
  return code != MPI_SUCCESS && MPI_Error_class(code, &error_class) == MPI_SUCCESS && error_class == MPI_ERR_TRUNCATE;
}

}  // namespace

int largest_tag() {
  int* largest = nullptr;
  int is_known = 0;
  check_mpi(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&largest), &is_known),
            "tell its largest tag");
  constexpr int guaranteed = 32767;
  return is_known != 0 ? *largest : guaranteed;
}

std::size_t MessageInfo::count_of(std::size_t element_size) const {
  const auto length = static_cast<std::size_t>(bytes);
  require(
      length % element_size == 0, Failure::other,
      "the message with tag {} from rank {} has {} bytes, which is no whole number of elements of {} bytes. Receive "
      "it as the type that the rank sends.",
      tag, peer, bytes, element_size);
  return length / element_size;
}

void require_fits(const MessageInfo& message, std::size_t count, std::size_t element_size) {
  require(message.count_of(element_size) <= count, Failure::other,
          "the message with tag {} from rank {} has {} bytes, but the receiver's buffer has {}. Probe for a message "
          "before you allocate its buffer.",
          message.tag, message.peer, message.bytes, count * element_size);
}

MessageRequest::MessageRequest(const MessageInfo& buffer, std::size_t element_size)
    : buffer_(buffer), element_size_(element_size), exceptions_(std::uncaught_exceptions()) {}

void MessageRequest::swap(MessageRequest& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(buffer_, other.buffer_);
  std::swap(element_size_, other.element_size_);
  std::swap(exceptions_, other.exceptions_);
}

// MPI cannot cancel a send once the other rank may have seen it.
MessageRequest::~MessageRequest() {
  using Clock = std::chrono::steady_clock;
  if (!is_active()) return;
  const bool is_receive = element_size_ > 0;
  if (is_receive) static_cast<void>(MPI_Cancel(&handle_));
  const bool unwinds = std::uncaught_exceptions() > exceptions_;
  const auto deadline = unwinds ? Clock::now() + std::chrono::milliseconds(100) : Clock::time_point::max();
  const auto has_ended = [&] {
    int complete = 0;
    return MPI_Test(&handle_, &complete, MPI_STATUS_IGNORE) != MPI_SUCCESS || complete != 0;
  };
  if (!poll_with_backoff(has_ended, deadline)) static_cast<void>(MPI_Request_free(&handle_));
}

std::optional<MessageInfo> MessageRequest::test() {
  const bool is_send = element_size_ == 0;
  int complete = 0;
  MPI_Status status;
  const int code = MPI_Test(&handle_, &complete, &status);
  if (code != MPI_SUCCESS) handle_ = MPI_REQUEST_NULL;
  if (is_truncation(code)) {
    require_fits(message_of(status), static_cast<std::size_t>(buffer_.bytes) / element_size_, element_size_);
  }
  check_mpi(code, is_send ? "send a message" : "receive a message");
  if (complete == 0) return std::nullopt;
  if (is_send) return buffer_;
  const MessageInfo message = message_of(status);
  static_cast<void>(message.count_of(element_size_));
  return message;
}

MessageInfo MessageRequest::wait() {
  std::optional<MessageInfo> message;
  poll_with_backoff([&] { return (message = test()).has_value(); });
  return *message;
}

MessageRequest MessageRequest::sending(const Communicator& ranks, const void* values, std::size_t count,
                                       const ElementType& type, int destination, int tag) {
  require_rank(ranks, destination);
  require_tag(tag);
  const int length = mpi_count(count);
  MessageRequest request({destination, tag, static_cast<std::int64_t>(count * type.size)}, 0);
  // If a rank sends to itself after it started the receive, MPI_Isend of Open MPI 4.1 truncates short messages and
  // reports success.
  const auto start = destination == ranks.rank() ? MPI_Issend : MPI_Isend;
  check_mpi(start(values, length, type.type, destination, tag, ranks.handle(), &request.handle_), "send a message");
  return request;
}

MessageRequest MessageRequest::receiving(const Communicator& ranks, void* buffer, std::size_t count,
                                         const ElementType& type, int source, int tag) {
  if (source != any_source) require_rank(ranks, source);
  if (tag != any_tag) require_tag(tag);
  const int length = mpi_count(count);
  MessageRequest request({source, tag, static_cast<std::int64_t>(count * type.size)}, type.size);
  check_mpi(MPI_Irecv(buffer, length, type.type, source, tag, ranks.handle(), &request.handle_), "receive a message");
  return request;
}

std::vector<MessageInfo> wait_all(std::span<MessageRequest> requests) {
  std::vector<MessageInfo> messages;
  for (MessageRequest& request : requests) {
    if (request.is_active()) messages.push_back(request.wait());
  }
  return messages;
}

std::optional<CompletedMessage> wait_any(std::span<MessageRequest> requests) {
  std::optional<CompletedMessage> completed;
  poll_with_backoff([&] {
    bool are_empty = true;
    for (std::size_t index = 0; index < requests.size() && !completed; ++index) {
      if (!requests[index].is_active()) continue;
      are_empty = false;
      if (const std::optional<MessageInfo> message = requests[index].test()) completed = {index, *message};
    }
    return are_empty || completed.has_value();
  });
  return completed;
}

std::optional<MessageInfo> try_probe(const Communicator& ranks, int source, int tag) {
  if (source != any_source) require_rank(ranks, source);
  if (tag != any_tag) require_tag(tag);
  int is_there = 0;
  MPI_Status status;
  check_mpi(MPI_Iprobe(source, tag, ranks.handle(), &is_there, &status), "probe for a message");
  if (is_there == 0) return std::nullopt;
  return message_of(status);
}

MessageInfo probe(const Communicator& ranks, int source, int tag) {
  std::optional<MessageInfo> message;
  poll_with_backoff([&] { return (message = try_probe(ranks, source, tag)).has_value(); });
  return *message;
}

}  // namespace lockstep
