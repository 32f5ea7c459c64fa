// MPI's blocking collectives on slices of any length, in place.
#pragma once

#include <cstdint>

#include "comm/communicator.hpp"
#include "device/tensor.hpp"

namespace lockstep {

// MPI counts are of type int. A larger slice takes several calls.
inline constexpr std::int64_t largest_mpi_count = std::int64_t{1} << 30;

// All are collective over `ranks`, whose slices have the same length. `values` is f32 or i64, plain. Each call
// exchanges at most `largest` elements.
//
// Afterwards `values` is the sum, with the same bits on every rank.
void mpi_sum(const Tensor& values, const Communicator& ranks, std::int64_t largest = largest_mpi_count);
// Afterwards this rank's equal_part() of `values` is that of the sum. The other elements are undefined.
void mpi_reduce_scatter(const Tensor& values, const Communicator& ranks, std::int64_t largest = largest_mpi_count);
// Each rank's equal_part() is complete before the call, and all of `values` afterwards.
void mpi_all_gather(const Tensor& values, const Communicator& ranks, std::int64_t largest = largest_mpi_count);

}  // namespace lockstep
