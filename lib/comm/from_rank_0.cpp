#include "comm/from_rank_0.hpp"

#include <utility>

#include "base/error.hpp"

namespace lockstep {

std::string caught_failure(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return static_cast<char>(error.exit_code()) + std::string(error.what());
  }
  return "";
}

void throw_failure_of_rank_0(const Communicator& world, std::string failure) {
  failure = world.broadcast(std::move(failure), 0);
  if (!failure.empty()) throw Error(static_cast<Failure>(failure.front()), failure.substr(1));
}

void on_rank_0(const Communicator& world, const std::function<void()>& work) {
  throw_failure_of_rank_0(world, world.rank() == 0 ? caught_failure(work) : "");
}

std::string from_rank_0(const Communicator& world, const std::function<std::string()>& work) {
  std::string result;
  on_rank_0(world, [&] { result = work(); });
  return world.broadcast(std::move(result), 0);
}

}  // namespace lockstep
