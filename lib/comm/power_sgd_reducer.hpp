// PowerSGD (Vogels et al. 2019, "PowerSGD: practical low-rank gradient compression for distributed optimization"): sums
// matrices of gradients over ranks approximately, with far fewer bytes. For every matrix M and rank r:
//
//   M          = values + residual               of this rank
//   B          = sum over ranks of M F           F: the factors that the last step has found
//   B          is made orthonormal               the same on every rank
//   F          = sum over ranks of M^T B
//   values     = B F^T                           the result, in the place of the sum
//   residual   = M - values / ranks              what this rank adds in the next step (error feedback)
//
// A step sends rank x (rows + columns) values instead of rows x columns. Matrices for which that is less than half, as
// in PyTorch's powerSGD_hook, are compressed; all else, and every exact sum, is sent as it is. The bases are sent
// while further slices are filled, the factors in wait().
#pragma once

#include <memory>
#include <vector>

#include "comm/all_reducer.hpp"
#include "device/flat/low_rank.hpp"

namespace lockstep {

// Whether approximations of this rank save more than half of the bytes.
bool is_compressible(const FlatMatrix& matrix, int rank);
// Upper limit of the elements that compression allocates from the other reducer.
std::int64_t power_sgd_count(std::int64_t values, std::int64_t matrices);

struct PowerSgdOptions {
  LowRankPasses& passes;
  std::vector<FlatMatrix> matrices;  // compressible ones in `values`, in ascending order, each within one slice
  int rank;                          // of the approximations, at most the rows of any matrix without padding
};

// Collective. Compresses rounded sums of slices of `values`, f32 in host memory, which `reducer` has allocated. All
// other operations are those of `reducer`, whose ranks are those of `world`. The state() begins with no residuals and
// with random factors, the same on every rank.
std::unique_ptr<AllReducer> make_power_sgd_reducer(std::unique_ptr<AllReducer> reducer, const Communicator& world,
                                                   const Tensor& values, PowerSgdOptions options);

}  // namespace lockstep
