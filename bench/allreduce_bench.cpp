// Benchmarks gradient all-reduces: Open MPI's default, both reducers, and shared memory's reduce-scatter followed by
// its all-gather, interleaved in every round.
//
//   mpirun -n 2 allreduce_bench
//   mpirun -n 2 allreduce_bench --benchmark_filter=/45000/       45 MB alone
//   mpirun -n 2 allreduce_bench --benchmark_filter=buckets       the buckets of a step
//
// Sizes are 1 kB to 256 MB, and the buckets of a network's gradients, started one after another. Times are those of the
// slowest rank: the median over the rounds, and the 99th percentile. Algorithm bandwidth and bus bandwidth are
// nccl-tests' terms: bytes per second, and that times 2 (n - 1) / n for n ranks, the smallest link bandwidth. last_rank
// is the rank that most often finishes the shared-memory all-reduce last; last_share is the share of rounds in which it
// does. shared_over_mpi is the median over rounds of Open MPI's time divided by shared memory's, with its 95 %
// bootstrap interval. scaling_study measures the part of all-reduces that backward does not hide.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/all_reducer.hpp"
#include "comm/check_mpi.hpp"
#include "comm/mpi_session.hpp"
#include "device/cpu/cpu_device.hpp"
#include "rank_benches.hpp"
#include "recipe/run_options.hpp"
#include "step/all_reduce.hpp"
#include "step/model.hpp"

namespace lockstep {
namespace {

// The same on every rank, because a different number of rounds would deadlock.
constexpr int warm_up_rounds = 3;
int rounds_of(std::int64_t kilobytes) { return kilobytes <= 1000 ? 500 : kilobytes <= 25'000 ? 101 : 31; }

// The quantile of `values` for `share`, by nearest rank.
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
  std::vector<double> seconds = {};  // one per round, of the slowest rank
  std::vector<int> ended_last = {};  // by rank: the number of rounds in which it finished last
};

// One round. Every rank gets the same result.
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

void report(benchmark::State& state, const std::array<Contender, 4>& contenders, double bytes, int ranks) {
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

// The default buckets of a training.
std::vector<std::int64_t> buckets_of(const std::string& model, const SampleShape& sample, std::int64_t classes,
                                     const Communicator& world) {
  const auto device = cpu::open_cpu_device({.threads = 1});
  Model made(*device, {model, sample, classes});
  const std::int64_t count = made.store.gradient_buffer_count();
  auto reducer = make_cpu_all_reducer("auto", world, count * size_of(DType::f32));
  made.store.allocate(reducer->allocate(count));
  const AllReduce exchange(made.store, std::move(reducer), ReducerOptions{}.bucket_mib << 20);
  std::vector<std::int64_t> bytes;
  for (std::size_t bucket = 0; bucket < exchange.bucket_count(); ++bucket) {
    bytes.push_back(exchange.bucket_bytes(bucket));
  }
  return bytes;
}

// Consecutive slices of the given sizes.
std::vector<Tensor> slices_of(const Tensor& values, const std::vector<std::int64_t>& bytes) {
  std::vector<Tensor> slices;
  std::int64_t first = 0;
  for (const std::int64_t size : bytes) {
    const std::int64_t count = size / size_of(DType::f32);
    slices.push_back(values.slice(first, count));
    first += count;
  }
  return slices;
}

void sum_all(AllReducer& reducer, const std::vector<Tensor>& slices) {
  for (const Tensor& slice : slices) reducer.start_sum(slice);
  reducer.wait();
}

void reduce_scatter_and_all_gather(AllReducer& reducer, const std::vector<Tensor>& slices) {
  for (const Tensor& slice : slices) reducer.start_reduce_scatter(slice);
  reducer.wait();
  for (const Tensor& slice : slices) reducer.start_all_gather(slice);
  reducer.wait();
}

void allreduce(benchmark::State& state, const std::vector<std::int64_t>& slices, const Communicator& world) {
  const std::int64_t bytes = std::reduce(slices.begin(), slices.end());
  const std::int64_t count = bytes / size_of(DType::f32);
  std::vector<float> plain(static_cast<std::size_t>(count));
  const auto mpi = make_cpu_all_reducer("mpi", world, bytes);
  const auto shared = make_cpu_all_reducer("shared", world, bytes);
  const std::vector<Tensor> mpi_slices = slices_of(mpi->allocate(count), slices);
  const std::vector<Tensor> shared_slices = slices_of(shared->allocate(count), slices);

  const auto sum_by_open_mpi = [&] {
    float* values = plain.data();
    for (const std::int64_t size : slices) {
      const auto length = static_cast<int>(size / size_of(DType::f32));
      check_mpi(MPI_Allreduce(MPI_IN_PLACE, values, length, MPI_FLOAT, MPI_SUM, world.handle()), "sum");
      values += length;
    }
  };
  std::array<Contender, 4> contenders{
      {{"open_mpi", sum_by_open_mpi},
       {"mpi", [&] { sum_all(*mpi, mpi_slices); }},
       {"shared", [&] { sum_all(*shared, shared_slices); }},
       {"shared_in_two", [&] { reduce_scatter_and_all_gather(*shared, shared_slices); }}}};
  for (int round = 0; round < warm_up_rounds; ++round) {
    for (const Contender& contender : contenders) contender.sum();
  }
  for ([[maybe_unused]] auto _ : state) {
    for (Contender& contender : contenders) time_sum(contender, world);
    state.SetIterationTime(contenders[2].seconds.back());
  }
  report(state, contenders, static_cast<double>(bytes), world.size());
}

int run_benches(int argc, char** argv) {
  const MpiSession mpi(argc, argv);
  const Communicator world(MPI_COMM_WORLD);
  const auto add = [&world](const std::string& name, const std::vector<std::int64_t>& slices) {
    benchmark::RegisterBenchmark(name.c_str(), allreduce, slices, std::cref(world))
        ->Iterations(rounds_of(std::reduce(slices.begin(), slices.end()) / 1000))
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  };
  for (const std::int64_t kilobytes : {1, 4, 16, 64, 256, 1000, 4000, 11'000, 25'000, 45'000, 100'000, 256'000}) {
    add(fmt::format("allreduce/kB/{}", kilobytes), {kilobytes * 1000});
  }
  add("buckets/resnet20", buckets_of("resnet20", {32, 32, 3}, 10, world));
  add("buckets/resnet18", buckets_of("resnet18", {32, 32, 3}, 10, world));
  add("buckets/resnet50", buckets_of("resnet50", {224, 224, 3}, 1000, world));
  if (world.size() == 1) fmt::print(stderr, "one rank has nothing to sum. To measure: mpirun -n 2 {}\n", argv[0]);
  return run_benches_on_ranks(argc, argv, world);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::run_benches(argc, argv); }
