// Failures of single ranks in work of their own, of which all ranks of a communicator learn, so that they end their
// common work together and the process can continue (comm/agreed_error.hpp).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "comm/agreed_error.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {

// The first failure of this rank.
class ContainedFailure {
 public:
  explicit ContainedFailure(Communicator world) : world_(std::move(world)) {}

  // Runs `work`, and keeps its exception. Does nothing once this rank has failed. `work` must not call collectives,
  // except to throw an AgreedError, which passes.
  void run(const std::function<void()>& work);
  bool has_failed() const { return error_.has_value(); }

  // Collective. If any rank has failed, all ranks throw AgreedError with the error of the lowest one. `waiting`: this
  // rank's phase meanwhile.
  void agree(Phase waiting) const;

 private:
  Communicator world_;
  std::optional<Error> error_;
};

// Collective. Each rank runs `work`, as in ContainedFailure::run(). If it throws on any rank, all ranks throw
// AgreedError with the error of the lowest one.
void on_all_ranks(const Communicator& world, const std::function<void()>& work);

// The same with work of rank 0 only, for which the other ranks wait.
void on_rank_0(const Communicator& world, const std::function<void()>& work);
// The result of the work, on all ranks.
std::string from_rank_0(const Communicator& world, const std::function<std::string()>& work);

}  // namespace lockstep
