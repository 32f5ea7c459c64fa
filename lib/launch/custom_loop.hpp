// The main function of a program with a training loop of its own. Read this header first, then train/custom/custom_run.
//
//   struct Options {
//     static constexpr std::array<std::string_view, 1> metrics{"x"};  // validation metrics that it reports
//     std::int64_t increment_by = 1;
//     void declare(CLI::App& app) { add_number(app, "--increment-by", increment_by, {1, 1000}, "..."); }
//   };
//   int main(int argc, char** argv) {
//     return run_custom_loop<Options>(argc, argv, [](CustomRun& run, const Options& options) { ... });
//   }
//
// The program also has the options --output, --max-steps, --resume, --keep-latest, --time-limit and --print-recipe,
// with the meaning that they have in a training. `search` starts such programs as trials: apps/search.md has the
// contract. On SIGTERM, SIGUSR1 and SIGINT, CustomRun::should_preempt() returns true. If the options have a member
// `hang_timeout` (launch/hang_timeout), the job ends when a rank hangs.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "launch/number_option.hpp"
#include "launch/run.hpp"
#include "train/custom/custom_run.hpp"

namespace lockstep {

// Names that a program declares about itself, such as its metrics.
using DeclaredNames = std::span<const std::string_view>;

// Requirements of run_custom_loop() on a program's options. Those of run() may be used, too, except `stopping`.
template <class Options>
concept CustomLoopOptions = ProgramOptions<Options> && requires {
  DeclaredNames(Options::metrics);
};

// A resume refuses other values of the program's options, except of these: `static constexpr std::array may_change`,
// with names without dashes, of options that do not affect results.
template <class Options>
concept SaysWhatMayChange = requires {
  DeclaredNames(Options::may_change);
};

// Which ranks get the arrays of the checkpoint that a run resumes from: `static constexpr RestoredArrays
// restored_arrays`; all ranks if the options do not say it.
template <class Options>
concept SaysWhoRestores = requires {
  RestoredArrays(Options::restored_arrays);
};

// Declares the program's options with `declare`, and those of every custom loop. After parsing, `run` has the values.
// It outlives the parsing.
void declare_custom_loop(CLI::App& app, const std::function<void(CLI::App&)>& declare, DeclaredNames metrics,
                         DeclaredNames may_change, CustomRunOptions& run);

// Collective. Runs `auto prepared = prepare(run, options)`, CustomRun::begin(), `body(run, options, prepared)` and
// CustomRun::conclude(). What `prepare` throws leaves earlier results in the output folder as they are. Returns the
// exit code, as run(). A body that returns an Ending has called CustomRun::conclude() itself.
template <CustomLoopOptions Options, std::invocable<CustomRun&, const Options&> Prepare, class Body>
int run_custom_loop(int argc, char** argv, Prepare prepare, Body body) {
  Options options;
  CustomRunOptions run_options;
  Program program = program_of(options);
  program.declare = [&](CLI::App& app) {
    const auto declare = [&](CLI::App& to) { options.declare(to); };
    DeclaredNames may_change;
    if constexpr (SaysWhatMayChange<Options>) may_change = Options::may_change;
    declare_custom_loop(app, declare, Options::metrics, may_change, run_options);
  };
  program.stopping = Stopping::graceful;
  program.body = [&](Session& session) {
    if constexpr (SaysWhoRestores<Options>) run_options.restored_arrays = Options::restored_arrays;
    CustomRun run(session, run_options);
    auto prepared = prepare(run, std::as_const(options));
    run.begin();
    if constexpr (std::same_as<std::invoke_result_t<Body&, CustomRun&, const Options&, decltype(prepared)&>, Ending>) {
      return body(run, std::as_const(options), prepared);
    } else {
      body(run, std::as_const(options), prepared);
      return run.conclude();
    }
  };
  return run_program(argc, argv, program);
}

// The same with nothing to prepare: `body(run, options)`.
template <CustomLoopOptions Options, std::invocable<CustomRun&, const Options&> Body>
int run_custom_loop(int argc, char** argv, Body body) {
  struct Nothing {};
  return run_custom_loop<Options>(
      argc, argv, [](CustomRun&, const Options&) { return Nothing(); },
      [&body](CustomRun& run, const Options& options, Nothing) { body(run, options); });
}

}  // namespace lockstep
