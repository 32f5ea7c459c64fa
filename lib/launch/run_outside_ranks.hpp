// What main of a program does that is no rank: it runs in a job script or a shell, once, without MPI.
#pragma once

#include <functional>

#include "launch/run.hpp"

namespace lockstep {

// As run_program(): --help, --version, one sentence and code 2 for a wrong option; the code of `body` otherwise, or of
// what it throws, in one sentence.
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

}  // namespace lockstep
