// How fast gradients are summed over ranks: Open MPI's default against both reducers, one after another in every round.
//
//   mpirun -n 2 allreduce_bench
//   mpirun -n 2 allreduce_bench --benchmark_filter=/45000/       45 MB alone
//
// From 1 kB to 256 MB. Times are of the slowest rank: the median over the rounds, and the 99th percentile. Algorithm
// and bus bandwidth are what nccl-tests calls so: bytes a second, and that times 2 (n - 1) / n, which a link must carry
// at least for n ranks. last_rank is the rank that shared memory's sums most often end on last, and last_share in how
// many of the rounds. shared_over_mpi is the median over rounds of Open MPI's time divided by shared memory's, with its
// 95 % bootstrap interval. A model's own buckets are timed by scaling_study.
#include <benchmark/benchmark.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/all_reducer.hpp"
#include "comm/check_mpi.hpp"
#include "comm/mpi_session.hpp"

namespace lockstep {
namespace {

// The same on every rank, or they would wait for each other for ever.
constexpr int warm_up_rounds = 3;
int rounds_of(std::int64_t kilobytes) { return kilobytes <= 1000 ? 500 : kilobytes <= 25'000 ? 101 : 31; }

// The value that a share of the others do not exceed.
double quantile(std::vector<double> values, double share) {
  const auto last = static_cast<double>(values.size() - 1);
  const auto place = static_cast<std::ptrdiff_t>(std::ceil(share * last));
  std::ranges::nth_element(values, values.begin() + place);
  return values[static_cast<std::size_t>(place)];
}
double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

// The 95 % percentile bootstrap of the median (Efron 1979).
std::pair<double, double> interval_of_median(const std::vector<double>& values) {
  constexpr std::size_t resamples = 2000;
  std::mt19937 random(1);
  std::uniform_int_distribution<std::size_t> any(0, values.size() - 1);
  std::vector<double> medians(resamples);
  for (double& one : medians) {
    std::vector<double> resample(values.size());
    for (double& value : resample) value = values[any(random)];
    one = median(std::move(resample));
  }
  std::ranges::sort(medians);
  return {medians[resamples / 40], medians[resamples - resamples / 40 - 1]};
}

struct Contender {
  const char* name;
  std::function<void()> sum;
  std::vector<double> seconds = {};  // by round, of the slowest rank
  std::vector<int> ended_last = {};  // by rank, how often
};

// One round. Every rank learns the same.
void time_sum(Contender& contender, const Communicator& world) {
  MPI_Barrier(world.handle());
  const auto start = std::chrono::steady_clock::now();
  contender.sum();
  const std::array own = {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
  std::vector<double> all(static_cast<std::size_t>(world.size()));
  world.all_gather(own, all);
  const auto slowest = std::ranges::max_element(all);
  contender.seconds.push_back(*slowest);
  contender.ended_last.resize(all.size());
  ++contender.ended_last[static_cast<std::size_t>(slowest - all.begin())];
}

void report(benchmark::State& state, const std::array<Contender, 3>& contenders, double bytes, int ranks) {
  const Contender& shared = contenders[2];
  std::vector<double> ratios(contenders[0].seconds.size());
  std::ranges::transform(contenders[0].seconds, shared.seconds, ratios.begin(), std::divides<>());
  for (const Contender& contender : contenders) {
    const double seconds = median(contender.seconds);
    const std::string name = contender.name;
    state.counters[name + "_ms"] = 1e3 * seconds;
    state.counters[name + "_p99_ms"] = 1e3 * quantile(contender.seconds, 0.99);
    state.counters[name + "_algorithm_GB/s"] = 1e-9 * bytes / seconds;
    state.counters[name + "_bus_GB/s"] = 1e-9 * bytes / seconds * 2 * (ranks - 1) / ranks;
  }
  const auto last = std::ranges::max_element(shared.ended_last);
  state.counters["last_rank"] = static_cast<double>(last - shared.ended_last.begin());
  state.counters["last_share"] = static_cast<double>(*last) / static_cast<double>(shared.seconds.size());
  state.counters["shared_over_mpi"] = median(ratios);
  std::tie(state.counters["low"].value, state.counters["high"].value) = interval_of_median(ratios);
}

void allreduce(benchmark::State& state, const Communicator& world) {
  const std::int64_t bytes = state.range(0) * 1000;
  const std::int64_t count = bytes / size_of(DType::f32);
  std::vector<float> plain(static_cast<std::size_t>(count));
  const auto mpi = make_cpu_all_reducer("mpi", world, bytes);
  const auto shared = make_cpu_all_reducer("shared", world, bytes);
  const Tensor mpi_values = mpi->allocate(count);
  const Tensor shared_values = shared->allocate(count);

  std::array<Contender, 3> contenders{{{"open_mpi",
                                        [&] {
                                          check_mpi(MPI_Allreduce(MPI_IN_PLACE, plain.data(), static_cast<int>(count),
                                                                  MPI_FLOAT, MPI_SUM, world.handle()),
                                                    "sum");
                                        }},
                                       {"mpi",
                                        [&] {
                                          mpi->start_sum(mpi_values);
                                          mpi->wait();
                                        }},
                                       {"shared", [&] {
                                          shared->start_sum(shared_values);
                                          shared->wait();
                                        }}}};
  for (int round = 0; round < warm_up_rounds; ++round) {
    for (const Contender& contender : contenders) contender.sum();
  }
  for ([[maybe_unused]] auto _ : state) {
    for (Contender& contender : contenders) time_sum(contender, world);
    state.SetIterationTime(contenders[2].seconds.back());
  }
  report(state, contenders, static_cast<double>(bytes), world.size());
}

// Ranks other than 0 run the same and say nothing.
class Silent final : public benchmark::BenchmarkReporter {
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

void run_benches(int argc, char** argv) {
  const MpiSession mpi(argc, argv);
  const Communicator world(MPI_COMM_WORLD);
  for (const std::int64_t kilobytes : {1, 4, 16, 64, 256, 1000, 4000, 11'000, 25'000, 45'000, 100'000, 256'000}) {
    benchmark::RegisterBenchmark("allreduce/kB", [&world](benchmark::State& state) { allreduce(state, world); })
        ->Arg(kilobytes)
        ->Iterations(rounds_of(kilobytes))
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::Initialize(&argc, argv);
  Silent silent;
  if (world.rank() == 0) {
    benchmark::RunSpecifiedBenchmarks();
  } else {
    benchmark::RunSpecifiedBenchmarks(&silent);
  }
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) { lockstep::run_benches(argc, argv); }
