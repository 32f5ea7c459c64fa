// Benchmarks a step of an embedding table: fetch, sums of gradients, update. Rows are sparse, or all of them (dense).
//
//   embedding_bench                                          10^3 to 10^7 rows of width 32
//   embedding_bench --benchmark_filter=adagrad/sparse
//   mpirun -n 2 embedding_bench                              sparse steps with the exchange of rows; times of rank 0
//
// A batch touches 1600 rows, drawn uniformly with repetitions. A sparse step takes about the same time for any table
// that exceeds the caches. A dense step has a gradient and an update for every row, as torch.nn.Embedding without
// `sparse=True`. `megabytes` are those of values, optimizer state and, if dense, gradients; `touched_rows` those of the
// last batch. A dense table that would need more than 4 GiB is skipped, and its bytes are stated.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "comm/mpi_session.hpp"
#include "embedding/row_table.hpp"
#include "rank_benches.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t width = 32;
constexpr std::int64_t batch = 1600;
constexpr double largest_dense = 4096;  // MiB

enum class Gradients : std::uint8_t { sparse, dense };

class Step {
 public:
  Step(std::int64_t rows, const RowOptimizerOptions& options, const Communicator& world)
      : world_(world),
        table_("table", rows, width, options),
        sums_(width, static_cast<int>(batch) * world.size()),
        values_(batch * width) {}

  // Draws the batch, outside of the measured time.
  void prepare() {
    rows_.clear();
    for (std::int64_t i = 0; i < batch; ++i) {
      const std::uint64_t bits =
          philox(1, static_cast<std::uint64_t>(world_.rank()), static_cast<std::uint64_t>(next_++))[0];
      rows_.push_back(static_cast<std::int64_t>(bits * static_cast<std::uint64_t>(table_.rows()) >> 32));
    }
  }
  void sparse() {
    table_.fetch(rows_, values_);
    sums_.clear();
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      sums_.add(rows_[i], std::span(values_).subspan(i * width, width));
    }
    sums_.sum_over_ranks(world_);
    table_.update(sums_.gradients());
  }
  void dense() {
    if (gradients_.rows.empty()) {
      gradients_.rows.resize(static_cast<std::size_t>(table_.rows()));
      std::iota(gradients_.rows.begin(), gradients_.rows.end(), 0);
    }
    table_.fetch(rows_, values_);
    gradients_.values.assign(static_cast<std::size_t>(table_.rows() * width), 0.0F);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      float* to = gradients_.values.data() + rows_[i] * width;
      for (std::size_t k = 0; k < width; ++k) to[k] += values_[i * width + k];
    }
    table_.update(gradients_);
  }
  std::int64_t touched_rows() const { return sums_.count(); }

 private:
  const Communicator& world_;
  RowTable table_;
  RowSums sums_;
  RowGradients gradients_;
  std::vector<float> values_;
  std::vector<std::int64_t> rows_;
  std::int64_t next_ = 0;
};

double megabytes(std::int64_t rows, Gradients gradients, std::size_t states) {
  const double arrays = 1 + static_cast<double>(states) + (gradients == Gradients::dense ? 1 : 0);
  return arrays * static_cast<double>(rows * width * static_cast<std::int64_t>(sizeof(float))) / (1 << 20);
}

void run_step(benchmark::State& state, std::int64_t rows, Gradients gradients, const RowOptimizerOptions& options,
              const Communicator& world) {
  const double needed = megabytes(rows, gradients, state_names(row_rule(options)).size());
  state.counters["megabytes"] = needed;
  if (gradients == Gradients::dense && needed > largest_dense) {
    state.SkipWithError(fmt::format("needs {:.0f} MiB", needed).c_str());
    return;
  }
  Step step(rows, options, world);
  for (auto _ : state) {
    state.PauseTiming();
    step.prepare();
    state.ResumeTiming();
    gradients == Gradients::sparse ? step.sparse() : step.dense();
  }
  if (gradients == Gradients::sparse) state.counters["touched_rows"] = static_cast<double>(step.touched_rows());
}

// Every rank runs the same number of steps.
constexpr std::int64_t steps_of_ranks = 200;

void register_steps(const Communicator& world) {
  const std::vector<std::pair<std::string, RowOptimizerOptions>> optimizers = {
      {"sgd_decay", {.kind = RowOptimizerKind::sgd, .learning_rate = 1e-3F, .weight_decay = 0.01F}},
      {"adagrad", {.kind = RowOptimizerKind::adagrad, .learning_rate = 1e-3F}},
      {"adamw", {.kind = RowOptimizerKind::adamw, .learning_rate = 1e-3F}}};
  for (const auto& [name, options] : optimizers) {
    for (const Gradients gradients : {Gradients::sparse, Gradients::dense}) {
      for (std::int64_t rows = 1000; rows <= 10'000'000; rows *= 10) {
        const std::string label =
            fmt::format("{}/{}/rows:{}", name, gradients == Gradients::sparse ? "sparse" : "dense", rows);
        if (world.size() > 1 && gradients == Gradients::dense) continue;
        auto* const bench =
            benchmark::RegisterBenchmark(label.c_str(), run_step, rows, gradients, options, std::cref(world));
        bench->Unit(benchmark::kMillisecond)->UseRealTime();
        if (world.size() > 1) bench->Iterations(steps_of_ranks);
      }
    }
  }
}

int run_benches(int argc, char** argv) {
  const MpiSession mpi(argc, argv);
  const Communicator world(MPI_COMM_WORLD);
  register_steps(world);
  return run_benches_on_ranks(argc, argv, world);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::run_benches(argc, argv); }
