// Ranks of one machine as if they sat on nodes of their own, under a watcher each. One of them ends or hangs as told,
// the others wait for it.
//
//   watched_program RANKS_PER_NODE RANK HOW HANG_TIMEOUT OUTPUT
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/log.hpp"
#include "comm/all_reducer.hpp"
#include "comm/mpi_session.hpp"
#include "comm/point_to_point.hpp"
#include "runtime/failure/failure_report.hpp"
#include "runtime/watch/watcher.hpp"

namespace lockstep {
namespace {

// What the device of every rank would write.
SumMarks gpu{1648, 2, 5'000'000, 1647, 1'800'000};

constexpr int every_rank = -2;
constexpr const char* late = "kill_while_rank_0_is_late";

// This rank's watcher, asked where the rank is, has nowhere to say it: as if it got no processor. It gets on a while
// after a launcher has told this rank to end, from where Open MPI 5 leaves a quarter of a second.
class LateWatcher {
 public:
  LateWatcher() {
    if (::pipe(pipe_.data()) != 0) std::abort();
    ::fcntl(pipe_[1], F_SETFL, O_NONBLOCK);
    while (::write(pipe_[1], "", 1) > 0) continue;
    ::fcntl(pipe_[1], F_SETFL, 0);
    ::dup2(pipe_[1], STDERR_FILENO);
    ::raise(SIGUSR2);
  }
  void wait_for_terminate() const {
    ::sleep(60);  // or until a signal has been handled
    ::usleep(100'000);
    for (char byte = 0; ::read(pipe_[0], &byte, 1) > 0;) continue;
  }

 private:
  std::array<int, 2> pipe_{};
};

const std::map<std::string, std::function<void()>> ways = {
    {"finish", [] {}},
    {"kill", [] { ::kill(::getpid(), SIGKILL); }},
    {late, [] { ::kill(::getpid(), SIGKILL); }},
    {"stop", [] { ::raise(SIGSTOP); }},
    {"terminate",
     [] {
       ::raise(SIGTERM);
       ::sleep(60);
     }},
    {"hang",
     [] {
       rank_status::enter(Phase::backward);
       ::sleep(60);
     }},
    {"stick_gpu",
     [] {
       gpu.begun = gpu.ended;
       gpu.ended_ns = gpu.begun_ns + 3'200'000;
     }},
    {"fail",
     [] {
       failure_report::write({65, 0, "shard 'x.h5' is damaged."});
       ::_exit(65);
     }},
};

// `rank` stops before its part of an all-gather, in which the others wait for it.
void gather_weights(const Communicator& world, int rank) {
  const auto reducer = make_cpu_all_reducer("shared", world, 4096);
  const Tensor weights = reducer->allocate(1024);
  rank_status::enter(Phase::gathering_weights);
  rank_status::begin_sum();
  if (world.rank() == rank) ::raise(SIGSTOP);
  reducer->start_all_gather(weights);
  reducer->wait();
}

// `rank` ends or stops before it sends, while the others wait for its messages.
void gather_results(const Communicator& world, int rank, const std::function<void()>& end) {
  rank_status::enter(Phase::gathering);
  if (world.rank() == rank) end();
  float value = 0;
  receive<float>(world, {&value, 1}, rank, 0);
}

void play(const Communicator& world, int ranks_per_node, int rank, const std::string& how) {
  std::optional<rank_status::PublishedMarks> marks;
  if (how == "stick_gpu") marks.emplace(&gpu);
  std::optional<LateWatcher> own_watcher;
  if (how == late && world.rank() == 0) own_watcher.emplace();
  rank_status::set_step(412);
  rank_status::enter(Phase::meeting);
  world.barrier();
  if (how == "stop_before_all_gather") {
    gather_weights(world, rank);
  } else if (how == "stop_before_message" || how == "kill_before_message") {
    gather_results(world, rank, ways.at(how.substr(0, 4)));
  } else if (world.rank() == rank || rank == every_rank) {
    ways.at(how)();
  }
  if (own_watcher) own_watcher->wait_for_terminate();
  rank_status::enter(Phase::reducing);
  if (marks) ::sleep(60);
  world.barrier();
  // Nobody's end is a death once all have come so far, however far apart they end.
  ::usleep(static_cast<useconds_t>(200'000 * (world.rank() % (ranks_per_node + 1))));
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  using namespace lockstep;
  ProcessSignals signals(Stopping::immediate);
  const MpiSession mpi(argc, argv);
  const Communicator world(MPI_COMM_WORLD);
  const int ranks_per_node = std::atoi(argv[1]);
  const int node_number = world.rank() / ranks_per_node;
  const std::string host = fmt::format("n{}", node_number + 1);
  log::set_identity(world.rank(), host);
  failure_report::set_rank(world.rank(), host);
  failure_report::set_folder(argv[5]);
  const Watcher watcher(world, world.split(node_number, world.rank()), host, signals, {std::atof(argv[4])});
  play(world, ranks_per_node, std::atoi(argv[2]), argv[3]);
}
