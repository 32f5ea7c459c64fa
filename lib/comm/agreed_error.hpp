// An error that all ranks of a communicator throw at the same point.
//
// A rank that throws alone may not unwind its stack while others wait for it, because destructors may be collective. So
// an exception ends the job where it is thrown (launch/run.hpp), unless all ranks throw together.
#pragma once

#include "base/error.hpp"
#include "comm/communicator.hpp"

namespace lockstep {

class AgreedError : public Error {
 public:
  AgreedError(const Error& error, int rank) : Error(error), rank_(rank) {}

  int rank() const { return rank_; }  // that failed, as the job counts

 private:
  int rank_;
};

// Collective. Every rank throws AgreedError with the `error` that `rank` passes.
[[noreturn]] void throw_on_all_ranks(const Communicator& world, int rank, const Error& error);

}  // namespace lockstep
