// A program that ends, or hangs, in the way and on the rank that its options say, while the other ranks wait for it.
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <new>
#include <string>
#include <system_error>
#include <thread>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/log_scope.hpp"
#include "launch/number_option.hpp"
#include "launch/run.hpp"
#include "runtime/failure/failure_report.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {
namespace {

struct HowWatched {
  double seconds = 0;
  bool by_time = false;  // as programs that do not train
  WatchOptions watch_options() const { return {seconds, by_time ? ProgressBy::marks_and_time : ProgressBy::marks}; }
};

struct FailingOptions {
  std::string how = "finish";
  int rank = 0;
  std::string output;
  std::string input;
  HowWatched hang_timeout;
  int ending = 0;
  bool quietly = false;

  void declare(CLI::App& app) {
    app.description("Ends as told.");
    app.add_option("--how", how, "finish, throw, ...");
    add_number(app, "--rank", rank, {-1, 1000}, "which rank does so");
    app.add_option("--output", output, "folder for failure.json");
    app.add_option("--input", input, "read by nobody")->type_name("FOLDER");
    add_number(app, "--hang-timeout", hang_timeout.seconds, {0, 1000}, "seconds");
    app.add_flag("--by-time", hang_timeout.by_time, "whether processor time is progress");
    app.add_flag("--quietly", quietly, "nothing else");
    add_number(app, "--ending", ending, {0, 255}, "the code to end with in good order");
  }
};

// A scope that a rank cannot leave alone.
struct MeetsTheOthers {
  const Communicator& world;
  ~MeetsTheOthers() {
    log::warning("unwound");
    world.barrier();
  }
};

[[noreturn]] void throw_error() {
  throw Error(Failure::bad_data, "shard 'x.h5' is \"damaged\" (block 3 of 7). Re-run make_shards?");
}

// So many frames of 16 KiB. Returns what nobody needs, so that every frame is needed.
int fill_the_stack(int frames) {
  std::array<volatile int, 4096> frame;
  frame[0] = frames;
  if (frames == 0) return 0;
  return fill_the_stack(frames - 1) + frame[0];
}

void sleep_in(Phase phase) {
  rank_status::enter(phase);
  ::sleep(60);
}

const std::map<std::string, std::function<void()>> ways = {
    {"finish", [] {}},
    {"throw", throw_error},
    {"throw_but_on_rank_2",
     [] {
       if (log::job_rank() < 2) throw_error();
       ::sleep(60);
     }},
    {"throw_in_thread", [] { std::thread(throw_error).join(); }},
    {"throw_other", [] { throw std::out_of_range("map::at"); }},
    {"throw_file_system", [] { std::filesystem::directory_iterator("/no/such/folder"); }},
    {"throw_system", [] { throw std::system_error(EMFILE, std::generic_category()); }},
    {"bad_alloc", [] { throw std::bad_alloc(); }},
    {"length_error", [] { static_cast<void>(std::string(std::string().max_size() + 1, ' ')); }},
    {"kill", [] { ::kill(::getpid(), SIGKILL); }},
    {"terminate",
     [] {
       ::raise(SIGTERM);
       ::sleep(60);
     }},
    {"exit", [] { std::exit(3); }},
    {"exit_0", [] { ::_exit(0); }},
    {"segfault", [] { ::raise(SIGSEGV); }},
    {"stack", [] { fill_the_stack(65536); }},
    {"half_a_mebibyte_in_thread", [] { std::thread(fill_the_stack, 32).join(); }},
    {"abort", [] { std::abort(); }},
    {"hang", [] { sleep_in(Phase::forward); }},
    {"hang_elsewhere", [] { sleep_in(Phase::gathering); }},
    {"hang_reading",
     [] {
       rank_status::begin_reading(rank_status::register_shard("/data/train-00003.h5"));
       sleep_in(Phase::reading);
     }},
    {"stop", [] { ::raise(SIGSTOP); }},
    {"work_slowly",
     [] {
       for (int i = 0; i < 30; ++i) {
         rank_status::enter(Phase::forward);
         std::this_thread::sleep_for(std::chrono::milliseconds(100));
       }
     }},
    {"work_unmarked",
     [] {
       rank_status::enter(Phase::forward);
       for (const Stopwatch watch; watch.seconds() < 4;) {
       }
     }},
    {"ask",
     [] {
       rank_status::set_step(412);
       rank_status::enter(Phase::backward);
       ::raise(SIGUSR2);
       std::this_thread::sleep_for(std::chrono::milliseconds(500));
     }},
};

void note_the_moment(const std::string& folder) { std::ofstream(std::filesystem::path(folder) / "last_moment"); }

Ending end_as_told(Session& session, const FailingOptions& options) {
  failure_report::set_folder(options.output);
  if (session.world.rank() == 0) failure_report::clear();
  rank_status::register_shard("/data/train-00003.h5");
  rank_status::enter(Phase::meeting);
  session.world.barrier();
  if (options.rank != session.world.rank() && options.rank >= 0) {
    session.world.barrier();
    log::warning("went on");
    return {};
  }
  const MeetsTheOthers scope{session.world};
  if (!options.output.empty()) note_the_moment(options.output);
  ways.at(options.how)();
  return {options.ending, fmt::format("ended by rank {}", session.world.rank())};
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::run<lockstep::FailingOptions>(argc, argv, lockstep::end_as_told); }
