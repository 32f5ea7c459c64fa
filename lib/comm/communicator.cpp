#include "comm/communicator.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "comm/check_mpi.hpp"
#include "comm/joined_texts.hpp"
#include "comm/patience.hpp"

namespace lockstep {
namespace {

// MPI counts are of type int.
constexpr std::size_t largest_message = std::size_t{1} << 30;

// Owns a communicator created here. Freeing is collective. After MPI_Finalize there is nothing to free.
std::shared_ptr<MPI_Comm> owned(MPI_Comm handle) {
  return {new MPI_Comm(handle), [](MPI_Comm* comm) {
            int finalized = 0;
            MPI_Finalized(&finalized);
            if (finalized == 0) MPI_Comm_free(comm);
            delete comm;
          }};
}

MPI_Comm node_of(MPI_Comm handle, int rank) {
  MPI_Comm node = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(handle, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node),
            "find the ranks of this node");
  return node;
}

double reduce(double value, MPI_Op operation, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Iallreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, operation, comm, &request),
            "combine a value of all ranks");
  wait_with_backoff(request, "combine a value of all ranks");
  return value;
}

}  // namespace

Communicator::Communicator(MPI_Comm handle) : handle_(std::make_shared<MPI_Comm>(handle)) {
  check_mpi(MPI_Comm_rank(handle, &rank_), "tell this process its rank");
  check_mpi(MPI_Comm_size(handle, &size_), "count the ranks");
  MPI_Comm node = node_of(handle, rank_);
  check_mpi(MPI_Comm_rank(node, &local_rank_), "tell this process its rank on the node");
  check_mpi(MPI_Comm_size(node, &local_size_), "count the ranks of this node");
  check_mpi(MPI_Comm_free(&node), "free a communicator");
}

void Communicator::barrier() const {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibarrier(handle(), &request), "let the ranks meet");
  wait_with_backoff(request, "let the ranks meet");
}

void Communicator::broadcast(std::span<std::byte> bytes, int root) const {
  while (!bytes.empty()) {
    const std::size_t length = std::min(bytes.size(), largest_message);
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Ibcast(bytes.data(), static_cast<int>(length), MPI_BYTE, root, handle(), &request), "broadcast");
    wait_with_backoff(request, "broadcast");
    bytes = bytes.subspan(length);
  }
}

std::string Communicator::broadcast(std::string text, int root) const {
  std::uint64_t length = text.size();
  broadcast(std::as_writable_bytes(std::span(&length, 1)), root);
  text.resize(length);
  broadcast(std::as_writable_bytes(std::span(text)), root);
  return text;
}

double Communicator::sum(double value) const { return reduce(value, MPI_SUM, handle()); }

double Communicator::max(double value) const { return reduce(value, MPI_MAX, handle()); }

std::vector<std::string> Communicator::gather(std::string_view text, int root) const {
  const std::uint64_t length = text.size();
  std::vector<std::uint64_t> lengths(rank_ == root ? static_cast<std::size_t>(size_) : 0);
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Igather(&length, 1, MPI_UINT64_T, lengths.data(), 1, MPI_UINT64_T, root, handle(), &request), "gather");
  wait_with_backoff(request, "gather");

  const std::vector<int> counts(lengths.begin(), lengths.end());
  const std::vector<int> offsets = offsets_of(lengths);
  std::string all(static_cast<std::size_t>(offsets.back()), '\0');
  check_mpi(MPI_Igatherv(text.data(), message_length(length), MPI_CHAR, all.data(), counts.data(), offsets.data(),
                         MPI_CHAR, root, handle(), &request),
            "gather");
  wait_with_backoff(request, "gather");
  return cut(all, offsets);
}

std::vector<std::string> Communicator::all_gather(std::string_view text) const {
  const std::uint64_t length = text.size();
  std::vector<std::uint64_t> lengths(static_cast<std::size_t>(size_));
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Iallgather(&length, 1, MPI_UINT64_T, lengths.data(), 1, MPI_UINT64_T, handle(), &request), "gather");
  wait_with_backoff(request, "gather");

  const std::vector<int> counts(lengths.begin(), lengths.end());
  const std::vector<int> offsets = offsets_of(lengths);
  std::string all(static_cast<std::size_t>(offsets.back()), '\0');
  check_mpi(MPI_Iallgatherv(text.data(), message_length(length), MPI_CHAR, all.data(), counts.data(), offsets.data(),
                            MPI_CHAR, handle(), &request),
            "gather");
  wait_with_backoff(request, "gather");
  return cut(all, offsets);
}

void Communicator::all_gather(std::span<const double> own, std::span<double> all) const {
  assert(all.size() == own.size() * static_cast<std::size_t>(size_));
  const int count = message_length(own.size());
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Iallgather(own.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, handle(), &request), "gather");
  int has_pending_signal = 0;
  wait_until([&] {
    check_mpi(MPI_Test(&request, &has_pending_signal, MPI_STATUS_IGNORE), "gather");
    return has_pending_signal != 0;
  });
}

// MPI_Comm_split has no nonblocking form, so the ranks first meet in a barrier that sleeps.
Communicator Communicator::split(int color, int key) const {
  barrier();
  MPI_Comm part = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(handle(), color, key, &part), "split the ranks");
  Communicator made(part);
  made.handle_ = owned(part);
  return made;
}

Communicator Communicator::node() const {
  barrier();
  const MPI_Comm part = node_of(handle(), rank_);
  Communicator made(part);
  made.handle_ = owned(part);
  return made;
}

}  // namespace lockstep
