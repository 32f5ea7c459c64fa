#include "launch/common_refusal.hpp"

#include <mpi.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>

#include "base/clock.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep::common_refusal {
namespace {

// State for the terminate handler, which can only reach globals.
struct Prepared {
  std::thread::id main_thread;
  Communicator ranks;  // a separate communicator, unaffected by operations in progress on others
  ProcessSignals* signals;
};

// Never destroyed: a program that exits elsewhere must not free a communicator during exit.
std::unique_ptr<Prepared>& prepared() {
  static auto& only = *new std::unique_ptr<Prepared>;
  return only;
}

bool all_come(MPI_Comm ranks) {
  constexpr double patience_seconds = 1;
  MPI_Request coming = MPI_REQUEST_NULL;
  if (MPI_Ibarrier(ranks, &coming) != MPI_SUCCESS) return false;
  int have_come = 0;
  for (const Stopwatch waiting; have_come == 0 && waiting.seconds() < patience_seconds;) {
    if (MPI_Test(&coming, &have_come, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return have_come != 0;
}

void exit_in_any_case(int code) {
  std::thread([code] {
    std::this_thread::sleep_for(std::chrono::seconds(5));
    std::_Exit(code);
  }).detach();
}

}  // namespace

void prepare(const Communicator& world, ProcessSignals& signals) {
  if (world.size() == 1) return;
  prepared() = std::make_unique<Prepared>(Prepared{std::this_thread::get_id(), world.split(0, world.rank()), &signals});
}

void forget() { prepared().reset(); }

bool all_end(int code) {
  const Prepared* const here = prepared().get();
  if (here == nullptr || std::this_thread::get_id() != here->main_thread) return false;
  if (!all_come(here->ranks.handle())) return false;
  here->signals->ignore_terminate();
  rank_status::record().code = RankStatus::done;  // so that other ranks' watchers do not report this rank as dead
  exit_in_any_case(code);
  MPI_Finalize();
  return true;
}

}  // namespace lockstep::common_refusal
