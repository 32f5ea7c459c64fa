#include "comm/mpi_slices.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "comm/all_reducer.hpp"
#include "comm/check_mpi.hpp"
#include "comm/mpi_type.hpp"

namespace lockstep {
namespace {

// Calls `exchange` with the pieces of `values`, in order.
template <typename Exchange>
void in_pieces(const Tensor& values, std::int64_t largest, const Exchange& exchange) {
  const std::int64_t count = values.shape().count();
  for (std::int64_t first = 0; first < count; first += largest) {
    exchange(SlicePart{first, std::min(largest, count - first)});
  }
}

// What each rank's part has in common with a piece of the slice, by rank. Offsets are from the beginning of the piece.
struct Blocks {
  std::vector<int> counts;
  std::vector<int> offsets;
};

Blocks blocks_of(const Tensor& values, int ranks, const SlicePart& piece) {
  Blocks blocks;
  for (int rank = 0; rank < ranks; ++rank) {
    const SlicePart part = equal_part(values.shape().count(), ranks, rank);
    const auto offset = [&](std::int64_t at) { return std::clamp<std::int64_t>(at - piece.first, 0, piece.count); };
    const std::int64_t begin = offset(part.first);
    blocks.counts.push_back(static_cast<int>(offset(part.first + part.count) - begin));
    blocks.offsets.push_back(static_cast<int>(begin));
  }
  return blocks;
}

}  // namespace

void mpi_sum(const Tensor& values, const Communicator& ranks, std::int64_t largest) {
  in_pieces(values, largest, [&](const SlicePart& piece) {
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.slice(piece.first, piece.count).data(), static_cast<int>(piece.count),
                            mpi_type(values.dtype()), MPI_SUM, ranks.handle()),
              "sum gradients");
  });
}

// MPI puts this rank's block of the sum at the beginning of the piece.
void mpi_reduce_scatter(const Tensor& values, const Communicator& ranks, std::int64_t largest) {
  in_pieces(values, largest, [&](const SlicePart& piece) {
    const Blocks blocks = blocks_of(values, ranks.size(), piece);
    std::byte* const data = values.slice(piece.first, piece.count).data();
    check_mpi(
        MPI_Reduce_scatter(MPI_IN_PLACE, data, blocks.counts.data(), mpi_type(values.dtype()), MPI_SUM, ranks.handle()),
        "reduce-scatter gradients");
    const auto own = static_cast<std::size_t>(ranks.rank());
    const std::int64_t size = size_of(values.dtype());
    std::memmove(data + blocks.offsets[own] * size, data, static_cast<std::size_t>(blocks.counts[own] * size));
  });
}

void mpi_all_gather(const Tensor& values, const Communicator& ranks, std::int64_t largest) {
  in_pieces(values, largest, [&](const SlicePart& piece) {
    const Blocks blocks = blocks_of(values, ranks.size(), piece);
    check_mpi(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, values.slice(piece.first, piece.count).data(),
                             blocks.counts.data(), blocks.offsets.data(), mpi_type(values.dtype()), ranks.handle()),
              "all-gather weights");
  });
}

}  // namespace lockstep
