// Runs registered benchmarks on all ranks of a job.
#pragma once

#include <benchmark/benchmark.h>

#include <vector>

#include "comm/communicator.hpp"

namespace lockstep {

// Ranks other than 0 run the same benchmarks without output.
class SilentReporter final : public benchmark::BenchmarkReporter {
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

// Returns the exit code of the program.
inline int run_benches_on_ranks(int argc, char** argv, const Communicator& world) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  SilentReporter silent;
  if (world.rank() == 0) {
    benchmark::RunSpecifiedBenchmarks();
  } else {
    benchmark::RunSpecifiedBenchmarks(&silent);
  }
  return 0;
}

}  // namespace lockstep
