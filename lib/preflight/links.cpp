#include "preflight/links.hpp"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <vector>

#include "base/clock.hpp"
#include "comm/check_mpi.hpp"

namespace lockstep {
namespace {

double time_of_day() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

constexpr int clock_tag = 1;
constexpr int link_tag = 2;

ClockFacts ask(const Communicator& leaders, int other) {
  constexpr int questions = 20;
  double best = std::numeric_limits<double>::infinity();
  ClockFacts facts;
  for (int i = 0; i < questions; ++i) {
    double answer = 0;
    const double asked = time_of_day();
    const Stopwatch way;
    check_mpi(MPI_Sendrecv(&asked, 1, MPI_DOUBLE, other, clock_tag, &answer, 1, MPI_DOUBLE, other, clock_tag,
                           leaders.handle(), MPI_STATUS_IGNORE),
              "exchange clock times");
    const double seconds = way.seconds();
    if (seconds >= best) continue;
    best = seconds;
    facts = {answer - (asked + seconds / 2), seconds / 2};
  }
  check_mpi(MPI_Send(&facts, 2, MPI_DOUBLE, other, clock_tag, leaders.handle()), "send the clock offset");
  return facts;
}

ClockFacts answer(const Communicator& leaders) {
  for (;;) {
    std::vector<double> got(2);
    MPI_Status status;
    check_mpi(MPI_Recv(got.data(), 2, MPI_DOUBLE, 0, clock_tag, leaders.handle(), &status), "receive the clock offset");
    int count = 0;
    check_mpi(MPI_Get_count(&status, MPI_DOUBLE, &count), "count");
    if (count == 2) return {got[0], got[1]};
    const double now = time_of_day();
    check_mpi(MPI_Send(&now, 1, MPI_DOUBLE, 0, clock_tag, leaders.handle()), "send the clock time");
  }
}

// Seconds of one exchange of `bytes`: the minimum over `repetitions`.
double exchange_seconds(const Communicator& leaders, int other, std::size_t bytes, int repetitions) {
  std::vector<std::byte> out(bytes);
  std::vector<std::byte> in(bytes);
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repetitions; ++i) {
    const Stopwatch watch;
    check_mpi(MPI_Sendrecv(out.data(), static_cast<int>(bytes), MPI_BYTE, other, link_tag, in.data(),
                           static_cast<int>(bytes), MPI_BYTE, other, link_tag, leaders.handle(), MPI_STATUS_IGNORE),
              "measure a link");
    best = std::min(best, watch.seconds());
  }
  return best;
}

LinkFacts measure_with(const Communicator& leaders, int other) {
  constexpr std::size_t small = 8;
  constexpr std::size_t large = std::size_t{4} << 20;
  constexpr int many = 100;
  constexpr int few = 10;
  LinkFacts facts;
  facts.other = other;
  facts.latency_seconds = exchange_seconds(leaders, other, small, many);
  facts.bytes_per_second = static_cast<double>(large) / exchange_seconds(leaders, other, large, few);
  return facts;
}

}  // namespace

ClockFacts compare_clocks(const Communicator& leaders) {
  if (leaders.rank() != 0) return answer(leaders);
  for (int other = 1; other < leaders.size(); ++other) ask(leaders, other);
  return {};
}

std::optional<LinkFacts> measure_link(const Communicator& leaders) {
  const int n = leaders.size();
  const int links = n == 2 ? 1 : n;  // link i joins nodes i and i + 1
  if (n == 1) return std::nullopt;
  // Even links, then odd links, then the last link of an odd ring, which shares a node with the first.
  const auto turn_of = [&](int link) { return n % 2 == 1 && link == n - 1 ? 2 : link % 2; };
  std::optional<LinkFacts> own;
  for (int turn = 0; turn < 3; ++turn) {
    leaders.barrier();
    for (int link = 0; link < links; ++link) {
      const int next = (link + 1) % n;
      if (turn_of(link) != turn || (leaders.rank() != link && leaders.rank() != next)) continue;
      const LinkFacts facts = measure_with(leaders, leaders.rank() == link ? next : link);
      if (leaders.rank() == link) own = facts;
    }
  }
  return own;
}

}  // namespace lockstep
