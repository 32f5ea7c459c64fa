// What every program's main does: ranks, options, device, failure handling; then the program itself.
//
//   int main(int argc, char** argv) {
//     return run<TrainOptions>(argc, argv, [](Session& session, const TrainOptions& options) { ... });
//   }
#pragma once

#include <CLI/CLI.hpp>
#include <concepts>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "backend/session.hpp"
#include "runtime/stop/ending.hpp"
#include "runtime/watch/watcher.hpp"
#include "train/training_outcome.hpp"

namespace lockstep {

// What run() asks of a program's options. `declare` sets the program's description, options, defaults and checks.
template <class Options>
concept ProgramOptions = std::default_initializable<Options> && requires(Options& options, CLI::App& app) {
  options.declare(app);
};

// A program that computes says on what: then session.backend is opened. The ranks of the node are filled in by run().
template <class Options>
concept HasDevice = requires(const Options& options) {
  { options.device_options() } -> std::convertible_to<DeviceOptions>;
};

// A program whose ranks mark how they get on (runtime/watch/rank_status) says how long one may stand still. 0: for
// ever. One whose ranks do not mark each phase has a member `hang_timeout` (launch/hang_timeout).
template <class Options>
concept HasHangTimeout = requires(const Options& options) {
  { options.hang_timeout_seconds() } -> std::convertible_to<double>;
};

template <class Options>
concept HasHangOption = requires(const Options& options) {
  { options.hang_timeout.watch_options() } -> std::same_as<WatchOptions>;
};

// What SIGTERM, SIGUSR1 and SIGINT do to a program: end it at once, or make it stop in good order (see
// runtime/stop/process_signals). The latter is for one whose body asks session.signals, between its phases and in its
// loop; it says so by a member `static constexpr Stopping stopping`.
template <class Options>
concept SaysHowToStop = requires {
  { Options::stopping } -> std::convertible_to<Stopping>;
};

// A program that does something before MPI starts, which may forbid forks: `prepare` is called with the command line,
// before it is parsed. It leaves mistakes in it to the parser.
template <class Options>
concept Prepares = requires(Options& options, int argc, char** argv) {
  options.prepare(argc, argv);
};

// A program without the types: what run() hands to run_program().
struct Program {
  std::function<void(CLI::App&)> declare;
  std::function<void(int argc, char** argv)> prepare;
  std::function<std::optional<DeviceOptions>()> device_options;  // called after parsing, as are the others
  std::function<WatchOptions()> watch_options;
  Stopping stopping = Stopping::at_once;
  std::function<Ending(Session&)> body;
};
int run_program(int argc, char** argv, const Program& program);

// For a body that is one training.
Ending ending_of(const TrainingOutcome& outcome);

// Collective. Runs `body(session, options)` and returns the exit code of the program.
//
// A body that returns an Ending ends all ranks in good order with its code; every rank returns the same one. Unless the
// code is 0 rank 0 reports the sentence (runtime/failure/failure_report), and prints it where it tells of a failure.
//
// --help and --version: printed by rank 0, code 0. A wrong option or value: one sentence by rank 0, code 2 on all
// ranks. An exception of `body` ends the job with its Failure (std::bad_alloc and std::length_error: 70, others: 1) and
// is reported. One rank unwinds first; one of several ends the job at the throw, nothing unwound, because a destructor
// may be collective: so neither this function nor the program may catch what it does not handle. What all ranks refuse
// alike (usage, bad_data) ends in order, without MPI_Abort.
template <ProgramOptions Options, std::invocable<Session&, const Options&> Body>
int run(int argc, char** argv, Body body) {
  Options options;
  Program program;
  program.declare = [&](CLI::App& app) { options.declare(app); };
  program.prepare = [&](int count, char** words) {
    if constexpr (Prepares<Options>) options.prepare(count, words);
  };
  program.device_options = [&]() -> std::optional<DeviceOptions> {
    if constexpr (HasDevice<Options>) return options.device_options();
    return std::nullopt;
  };
  program.watch_options = [&]() -> WatchOptions {
    if constexpr (HasHangOption<Options>) return options.hang_timeout.watch_options();
    if constexpr (HasHangTimeout<Options>) return {options.hang_timeout_seconds()};
    return {};
  };
  if constexpr (SaysHowToStop<Options>) program.stopping = Options::stopping;
  program.body = [&](Session& session) -> Ending {
    if constexpr (std::same_as<std::invoke_result_t<Body&, Session&, const Options&>, Ending>) {
      return body(session, std::as_const(options));
    } else {
      body(session, std::as_const(options));
      return {};
    }
  };
  return run_program(argc, argv, program);
}

}  // namespace lockstep
