#include "runtime/trace/clock_offset.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "comm/check_mpi.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {
namespace {

constexpr int questions = 32;
constexpr int tag = 4711;

}  // namespace

ClockOffset best_offset(std::span<const ClockAnswer> answers) {
  const ClockAnswer& best = *std::ranges::min_element(
      answers, {}, [](const ClockAnswer& answer) { return answer.received_ns - answer.sent_ns; });
  const std::int64_t half = (best.received_ns - best.sent_ns) / 2;
  const std::int64_t middle = best.sent_ns + half;
  return {middle, best.remote_ns - middle, half + 1};
}

ClockOffset measure_offset(const Communicator& world) {
  const MPI_Comm ranks = world.handle();
  std::int64_t time = 0;
  if (world.rank() == 0) {
    for (int rank = 1; rank < world.size(); ++rank) {
      for (int question = 0; question < questions; ++question) {
        check_mpi(MPI_Recv(&time, 1, MPI_INT64_T, rank, tag, ranks, MPI_STATUS_IGNORE), "compare clocks");
        time = monotonic_ns();
        check_mpi(MPI_Send(&time, 1, MPI_INT64_T, rank, tag, ranks), "compare clocks");
      }
    }
    return {monotonic_ns(), 0, 0};
  }
  std::array<ClockAnswer, questions> answers{};
  for (ClockAnswer& answer : answers) {
    answer.sent_ns = monotonic_ns();
    check_mpi(MPI_Send(&answer.sent_ns, 1, MPI_INT64_T, 0, tag, ranks), "compare clocks");
    check_mpi(MPI_Recv(&answer.remote_ns, 1, MPI_INT64_T, 0, tag, ranks, MPI_STATUS_IGNORE), "compare clocks");
    answer.received_ns = monotonic_ns();
  }
  return best_offset(answers);
}

std::int64_t by_clock_of_rank_0(std::int64_t time_ns, const ClockOffset& first, const ClockOffset& last) {
  if (last.at_ns <= first.at_ns) return time_ns + first.offset_ns;
  const double passed = static_cast<double>(time_ns - first.at_ns) / static_cast<double>(last.at_ns - first.at_ns);
  const auto drift = static_cast<double>(last.offset_ns - first.offset_ns);
  return time_ns + first.offset_ns + std::llround(std::clamp(passed, 0.0, 1.0) * drift);
}

}  // namespace lockstep
