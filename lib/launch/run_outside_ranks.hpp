// The main function of programs without ranks: they run once, without MPI, in a job script or a shell.
#pragma once

#include <functional>

#include "launch/run.hpp"

namespace lockstep {

// Like run_program(): handles --help and --version; prints one sentence and returns 2 for a wrong option. Otherwise
// returns the code of `body`. If `body` throws, prints one sentence and returns the exception's code.
int run_program_outside_ranks(int argc, char** argv, const std::function<void(CLI::App&)>& declare,
                              const std::function<int()>& body);

//   int main(int argc, char** argv) {
//     return run_outside_ranks<StopOptions>(argc, argv, [](const StopOptions& options) { ...; return 0; });
//   }
template <ProgramOptions Options, std::invocable<const Options&> Body>
int run_outside_ranks(int argc, char** argv, Body body) {
  Options options;
  return run_program_outside_ranks(
      argc, argv, [&](CLI::App& app) { options.declare(app); }, [&] { return body(std::as_const(options)); });
}

// Returns the code of `body`. If it throws an Error, leaves an exit report (runtime/failure/failure_report) in the file
// that LOCKSTEP_VERDICT names, as rank 0, and throws it again.
int with_exit_report(const std::function<int()>& body);

}  // namespace lockstep
