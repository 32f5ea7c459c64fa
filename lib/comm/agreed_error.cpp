#include "comm/agreed_error.hpp"

#include <array>
#include <span>
#include <string>

#include "base/log_scope.hpp"

namespace lockstep {

void throw_on_all_ranks(const Communicator& world, int rank, const Error& error) {
  std::array<int, 2> numbers = {error.exit_code(), log::job_rank()};
  world.broadcast(std::as_writable_bytes(std::span(numbers)), rank);
  const std::string sentence = world.broadcast(error.what(), rank);
  throw AgreedError(Error(static_cast<Failure>(numbers[0]), sentence), numbers[1]);
}

}  // namespace lockstep
