// The main function of every program: ranks, options, device, failure handling, then the program's body.
//
//   int main(int argc, char** argv) {
//     return run<TrainOptions>(argc, argv, [](Session& session, const TrainOptions& options) { ... });
//   }
#pragma once

#include <CLI/App.hpp>
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

// Requirements of run() on a program's options. `declare` sets the program's description, options, defaults and checks.
template <class Options>
concept ProgramOptions = std::default_initializable<Options> && requires(Options& options, CLI::App& app) {
  options.declare(app);
};

// Options of a program that computes name its device: run() then opens session.backend. It fills in the ranks of the
// node.
template <class Options>
concept HasDevice = requires(const Options& options) {
  { options.device_options() } -> std::convertible_to<DeviceOptions>;
};

// Options of a program whose ranks report progress (runtime/watch/rank_status) give the timeout for a rank without
// progress. 0: no timeout. If the ranks do not report each phase, the options have a member `hang_timeout`
// (launch/hang_timeout).
template <class Options>
concept HasHangTimeout = requires(const Options& options) {
  { options.hang_timeout_seconds() } -> std::convertible_to<double>;
};

template <class Options>
concept HasHangOption = requires(const Options& options) {
  { options.hang_timeout.watch_options() } -> std::same_as<WatchOptions>;
};

// The effect of SIGTERM, SIGUSR1 and SIGINT: end the program at once, or make it stop cleanly (see
// runtime/stop/process_signals). A clean stop requires a body that checks session.signals between its phases and in its
// loop. Such a program has a member `static constexpr Stopping stopping`.
template <class Options>
concept SaysHowToStop = requires {
  { Options::stopping } -> std::convertible_to<Stopping>;
};

// Options of a program that must act before MPI starts, which may forbid fork(). `prepare` receives the unparsed
// command line and leaves errors in it to the parser.
template <class Options>
concept Prepares = requires(Options& options, int argc, char** argv) {
  options.prepare(argc, argv);
};

// A program without its option type: the argument of run_program().
struct Program {
  std::function<void(CLI::App&)> declare;
  std::function<void(int argc, char** argv)> prepare;
  std::function<std::optional<DeviceOptions>()> device_options;  // called after parsing, as are the ones below
  std::function<WatchOptions()> watch_options;
  Stopping stopping = Stopping::immediate;
  std::function<Ending(Session&)> body;
};
int run_program(int argc, char** argv, const Program& program);

// Collective. Opens session.backend, for a body that finds out itself how to. `options` are those of this rank.
void open_device(Session& session, DeviceOptions options);

// The Ending of a body that is one training.
Ending ending_of(const TrainingOutcome& outcome);
// Collective. The same for several trainings at the same time, one on each rank of the job: that of the first one that
// failed. A training that was stopped counts only if none failed.
Ending ending_of(const Communicator& job, const TrainingOutcome& outcome);

// A program with these options, which it refers to, and without a body.
template <ProgramOptions Options>
Program program_of(Options& options) {
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
  return program;
}

// Collective. Runs `body(session, options)` and returns the program's exit code.
//
// If the body returns an Ending, all ranks end cleanly with its code; every rank returns the same one. If the code is
// not 0, its rank reports the sentence (runtime/failure/failure_report), and prints it if it describes a failure.
//
// If all ranks throw AgreedError, they end likewise, with its code and sentence.
//
// A process without a launcher parses its options before MPI starts.
//
// --help and --version: rank 0 prints them, code 0. A wrong option or value: rank 0 prints one sentence, code 2 on all
// ranks. An exception from `body` is reported and ends the job with its Failure (std::bad_alloc and std::length_error:
// 70, others: 1). A single rank unwinds its stack first. With several ranks, the job ends at the throw without
// unwinding, because a destructor may be collective. So neither this function nor the program may catch an exception
// that it does not handle. If all ranks refuse for the same reason (usage, bad_data), the job ends without MPI_Abort.
template <ProgramOptions Options, std::invocable<Session&, const Options&> Body>
int run(int argc, char** argv, Body body) {
  Options options;
  Program program = program_of(options);
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
