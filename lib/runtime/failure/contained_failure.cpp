#include "runtime/failure/contained_failure.hpp"

#include <cmath>
#include <utility>

#include "base/current_error.hpp"

namespace lockstep {

void ContainedFailure::run(const std::function<void()>& work) {
  if (error_) return;
  try {
    work();
  } catch (const AgreedError&) {
    throw;
  } catch (...) {
    error_ = current_error();
  }
}

void ContainedFailure::agree(Phase waiting) const {
  if (world_.size() == 1 && !error_) return;
  const Phase before = rank_status::record().phase;
  rank_status::enter(waiting);
  const int own = error_ ? world_.rank() : world_.size();
  const int lowest = -static_cast<int>(std::lround(world_.max(-own)));
  if (lowest < world_.size()) throw_on_all_ranks(world_, lowest, error_.value_or(Error("")));
  rank_status::enter(before);
}

void on_all_ranks(const Communicator& world, const std::function<void()>& work) {
  ContainedFailure failure(world);
  failure.run(work);
  failure.agree(Phase::meeting);
}

void on_rank_0(const Communicator& world, const std::function<void()>& work) {
  on_all_ranks(world, [&] {
    if (world.rank() == 0) work();
  });
}

std::string from_rank_0(const Communicator& world, const std::function<std::string()>& work) {
  std::string result;
  on_rank_0(world, [&] { result = work(); });
  return world.broadcast(std::move(result), 0);
}

}  // namespace lockstep
