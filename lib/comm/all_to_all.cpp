#include "comm/all_to_all.hpp"

#include <cassert>
#include <cstdint>

#include "comm/check_mpi.hpp"
#include "comm/joined_texts.hpp"
#include "comm/patience.hpp"

namespace lockstep {

std::vector<std::string> all_to_all(const Communicator& ranks, std::span<const std::string> messages) {
  assert(std::ssize(messages) == ranks.size());
  std::string sent;
  std::vector<std::uint64_t> sent_lengths;
  for (const std::string& message : messages) {
    sent += message;
    sent_lengths.push_back(message.size());
  }
  std::vector<std::uint64_t> lengths(messages.size());
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(
      MPI_Ialltoall(sent_lengths.data(), 1, MPI_UINT64_T, lengths.data(), 1, MPI_UINT64_T, ranks.handle(), &request),
      "exchange messages");
  wait_with_backoff(request, "exchange messages");

  const std::vector<int> sent_offsets = offsets_of(sent_lengths);
  const std::vector<int> sent_counts(sent_lengths.begin(), sent_lengths.end());
  const std::vector<int> offsets = offsets_of(lengths);
  const std::vector<int> counts(lengths.begin(), lengths.end());
  std::string received(static_cast<std::size_t>(offsets.back()), '\0');
  check_mpi(MPI_Ialltoallv(sent.data(), sent_counts.data(), sent_offsets.data(), MPI_CHAR, received.data(),
                           counts.data(), offsets.data(), MPI_CHAR, ranks.handle(), &request),
            "exchange messages");
  wait_with_backoff(request, "exchange messages");
  return cut(received, offsets);
}

}  // namespace lockstep
