// Benchmarks a step of an embedding table: fetch, sums of gradients, update. Rows are sparse, or all of them (dense).
//
//   embedding_bench                                          10^3 to 10^7 rows of width 32
//   embedding_bench --benchmark_filter=adagrad/sparse
//   mpirun -n 3 embedding_bench                              sparse steps over ranks; times of rank 0
//
// A batch touches 1600 rows, drawn uniformly with repetitions. A sparse step takes about the same time for any table
// that exceeds the caches. A dense step has a gradient and an update for every row, as torch.nn.Embedding without
// `sparse=True`. A dense table that would need more than 4 GiB is skipped, and its bytes are stated.
//
// Over ranks, each has a batch. `sparse`: every rank has the whole table. `served:1`: the last rank is a parameter
// server, which has the table and no batch.
//
// Counters:
//   touched_rows      of the last batch, over all ranks
//   held_mib          values, optimizer state and, if dense, gradients that rank 0 holds
//   largest_held_mib  the same of the rank that holds most
//   resident_mib      memory of rank 0
//   received_kib      what MPI passes to rank 0 in a step, counted by the MPI profiling interface
//   all_received_kib  the same of all ranks together
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/io/file.hpp"
#include "base/random.hpp"
#include "comm/mpi_session.hpp"
#include "embedding/embedding_tables.hpp"
#include "rank_benches.hpp"

namespace {

double received_bytes = 0;  // since the program started

// Of what the other ranks send.
void count_received(std::span<const int> counts, MPI_Datatype type, MPI_Comm comm) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Type_size(type, &size);
  for (std::size_t other = 0; other < counts.size(); ++other) {
    if (other != static_cast<std::size_t>(rank)) received_bytes += static_cast<double>(counts[other]) * size;
  }
}

std::vector<int> equal_counts(int count, MPI_Comm comm) {
  int ranks = 0;
  MPI_Comm_size(comm, &ranks);
  std::vector<int> counts(static_cast<std::size_t>(ranks), count);
  return counts;
}

}  // namespace

extern "C" {

int MPI_Iallgather(const void* sent, int sent_count, MPI_Datatype sent_type, void* received, int count,
                   MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
  count_received(equal_counts(count, comm), type, comm);
  return PMPI_Iallgather(sent, sent_count, sent_type, received, count, type, comm, request);
}

int MPI_Iallgatherv(const void* sent, int sent_count, MPI_Datatype sent_type, void* received, const int counts[],
                    const int offsets[], MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
  count_received({counts, equal_counts(0, comm).size()}, type, comm);
  return PMPI_Iallgatherv(sent, sent_count, sent_type, received, counts, offsets, type, comm, request);
}

int MPI_Ialltoall(const void* sent, int sent_count, MPI_Datatype sent_type, void* received, int count,
                  MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
  count_received(equal_counts(count, comm), type, comm);
  return PMPI_Ialltoall(sent, sent_count, sent_type, received, count, type, comm, request);
}

int MPI_Ialltoallv(const void* sent, const int sent_counts[], const int sent_offsets[], MPI_Datatype sent_type,
                   void* received, const int counts[], const int offsets[], MPI_Datatype type, MPI_Comm comm,
                   MPI_Request* request) {
  count_received({counts, equal_counts(0, comm).size()}, type, comm);
  return PMPI_Ialltoallv(sent, sent_counts, sent_offsets, sent_type, received, counts, offsets, type, comm, request);
}

}  // extern "C"

namespace lockstep {
namespace {

constexpr std::int64_t width = 32;
constexpr std::int64_t batch = 1600;
constexpr double largest_dense = 4096;  // MiB

enum class Gradients : std::uint8_t { sparse, dense };

class Step {
 public:
  Step(std::int64_t rows, int servers, const RowOptimizerOptions& options, const Communicator& world)
      : world_(world),
        has_batch_(world.rank() < world.size() - servers),
        tables_(make_embedding_tables(world, servers, std::vector<TableShape>{{"table", rows, width}}, options,
                                      static_cast<int>(batch) * world.size())),
        rows_(1) {}

  // Draws the batch, outside of the measured time.
  void prepare() {
    rows_[0].clear();
    if (!has_batch_) return;
    const auto count = static_cast<std::uint64_t>(table().rows());
    for (std::int64_t i = 0; i < batch; ++i) {
      const std::uint64_t bits =
          philox(1, static_cast<std::uint64_t>(world_.rank()), static_cast<std::uint64_t>(next_++))[0];
      rows_[0].push_back(static_cast<std::int64_t>(bits * count >> 32));
    }
    values_.resize(rows_[0].size() * width);
  }
  void sparse() {
    tables_->prefetch(rows_);
    tables_->fetch(0, rows_[0], values_);
    tables_->clear_sums();
    for (std::size_t i = 0; i < rows_[0].size(); ++i) {
      tables_->sums()[0].add(rows_[0][i], std::span(values_).subspan(i * width, width));
    }
    tables_->sum_over_ranks();
    tables_->update();
  }
  void dense() {
    if (gradients_.rows.empty()) {
      gradients_.rows.resize(static_cast<std::size_t>(table().rows()));
      std::iota(gradients_.rows.begin(), gradients_.rows.end(), 0);
    }
    table().fetch(rows_[0], values_);
    gradients_.values.assign(static_cast<std::size_t>(table().rows() * width), 0.0F);
    for (std::size_t i = 0; i < rows_[0].size(); ++i) {
      float* to = gradients_.values.data() + rows_[0][i] * width;
      for (std::size_t k = 0; k < width; ++k) to[k] += values_[i * width + k];
    }
    table().update(gradients_);
  }
  // Collective.
  double touched_rows() const {
    std::vector<std::int64_t> rows;
    for (const std::string& text :
         world_.all_gather({reinterpret_cast<const char*>(rows_[0].data()), rows_[0].size() * sizeof(std::int64_t)})) {
      RowMessage message{text, 0};
      const std::vector<std::int64_t> own = message.take<std::int64_t>(text.size() / sizeof(std::int64_t));
      rows.insert(rows.end(), own.begin(), own.end());
    }
    std::ranges::sort(rows);
    return static_cast<double>(std::ranges::unique(rows).begin() - rows.begin());
  }
  double bytes() const {
    return static_cast<double>(tables_->bytes()) + static_cast<double>(gradients_.values.size() * sizeof(float));
  }

 private:
  RowTable& table() { return tables_->tables()[0].held(); }

  const Communicator& world_;
  bool has_batch_;
  std::unique_ptr<EmbeddingTables> tables_;
  RowGradients gradients_;
  std::vector<float> values_;
  RowLists rows_;
  std::int64_t next_ = 0;
};

double dense_mib(std::int64_t rows, const RowOptimizerOptions& options) {
  const auto arrays = static_cast<double>(2 + state_names(row_rule(options)).size());
  return arrays * static_cast<double>(rows * width * static_cast<std::int64_t>(sizeof(float))) / (1 << 20);
}

double resident_mib() {
  double pages = 0;
  std::istringstream(read_live_file("/proc/self/statm", 4096)) >> pages >> pages;
  return pages * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

struct Setting {
  std::int64_t rows = 0;
  Gradients gradients = Gradients::sparse;
  int servers = 0;
  RowOptimizerOptions options = {};
};

void run_step(benchmark::State& state, const Setting& setting, const Communicator& world) {
  if (setting.gradients == Gradients::dense && dense_mib(setting.rows, setting.options) > largest_dense) {
    state.SkipWithError(fmt::format("needs {:.0f} MiB", dense_mib(setting.rows, setting.options)).c_str());
    return;
  }
  Step step(setting.rows, setting.servers, setting.options, world);
  const double before = received_bytes;
  for (auto _ : state) {
    state.PauseTiming();
    step.prepare();
    world.barrier();
    state.ResumeTiming();
    setting.gradients == Gradients::sparse ? step.sparse() : step.dense();
  }
  const double received = (received_bytes - before) / static_cast<double>(state.iterations()) / 1024;
  state.counters["held_mib"] = step.bytes() / (1 << 20);
  state.counters["resident_mib"] = resident_mib();
  if (setting.gradients == Gradients::sparse) state.counters["touched_rows"] = step.touched_rows();
  if (world.size() == 1) return;
  state.counters["largest_held_mib"] = world.max(step.bytes()) / (1 << 20);
  state.counters["received_kib"] = received;
  state.counters["all_received_kib"] = world.sum(received);
}

// Every rank runs the same number of steps.
constexpr std::int64_t steps_of_ranks = 200;

void register_steps(const Communicator& world) {
  const std::vector<std::pair<std::string, RowOptimizerOptions>> optimizers = {
      {"sgd_decay", {.kind = RowOptimizerKind::sgd, .learning_rate = 1e-3F, .weight_decay = 0.01F}},
      {"adagrad", {.kind = RowOptimizerKind::adagrad, .learning_rate = 1e-3F}},
      {"adamw", {.kind = RowOptimizerKind::adamw, .learning_rate = 1e-3F}}};
  std::vector<std::pair<std::string, Setting>> forms = {{"sparse", {.gradients = Gradients::sparse, .servers = 0}}};
  if (world.size() == 1) forms.push_back({"dense", {.gradients = Gradients::dense, .servers = 0}});
  for (int servers = 1; servers < std::min(world.size(), 3); ++servers) {
    forms.push_back({fmt::format("served:{}", servers), {.gradients = Gradients::sparse, .servers = servers}});
  }
  for (const auto& [name, options] : optimizers) {
    for (const auto& [form, of_form] : forms) {
      for (std::int64_t rows = 1000; rows <= 10'000'000; rows *= 10) {
        Setting setting = of_form;
        setting.rows = rows;
        setting.options = options;
        const std::string label = fmt::format("{}/{}/rows:{}", name, form, rows);
        auto* const bench = benchmark::RegisterBenchmark(label.c_str(), run_step, setting, std::cref(world));
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
