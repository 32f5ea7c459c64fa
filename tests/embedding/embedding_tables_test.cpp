#include "embedding/embedding_tables.hpp"

#include <gmock/gmock.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "support/messages.hpp"
#include "support/streamed_arrays.hpp"

namespace lockstep::embedding_tables_test {

// The second one has fewer rows than there may be servers.
const std::vector<TableShape> shapes{{"a", 23, 3}, {"b", 2, 1}, {"c", 10, 2}};
constexpr int samples = 12;  // of a step, over all ranks
constexpr int terms = 2 * samples;

Communicator world() { return Communicator(MPI_COMM_WORLD); }

// The rows of a sample: some occur several times in a step and in a sample, others never.
std::vector<std::int64_t> rows_of(std::int64_t step, int sample, std::size_t table) {
  const std::int64_t row = (step * 5 + sample * sample) % (shapes[table].rows - (table == 1 ? 0 : 1));
  return {row, sample % 3 == 0 ? row : 0};
}

std::vector<RowOptimizerOptions> optimizers() {
  std::vector<RowOptimizerOptions> all;
  for (const RowOptimizerKind kind :
       {RowOptimizerKind::sgd, RowOptimizerKind::adagrad, RowOptimizerKind::rmsprop, RowOptimizerKind::adamw}) {
    const bool decays = kind == RowOptimizerKind::sgd || kind == RowOptimizerKind::adamw;
    RowOptimizerOptions options{.kind = kind, .learning_rate = 0.1F, .weight_decay = decays ? 0.3F : 0.0F};
    all.push_back(options);
    LearningRate rate;
    rate.rate = 0.1;
    rate.base_batch = 0;
    rate.schedule = Schedule::cosine;
    options.schedule.emplace(rate, 1, 20, 20);
    all.push_back(options);
  }
  return all;
}

class Training {
 public:
  // On one rank: without others.
  Training(const Communicator& ranks, int servers, const RowOptimizerOptions& options)
      : ranks_(ranks),
        trainers_(ranks.size() - servers),
        tables_(make_embedding_tables(ranks, servers, shapes, options, terms)) {
    std::int64_t number = 0;
    for (DistributedTable& table : tables_->tables()) {
      table.fill([&](std::int64_t i) { return 1.0F / static_cast<float>(i + 3 + number); });
      ++number;
    }
  }

  // Gradients depend on the fetched values. Returns the sum of those of this rank.
  void step(std::int64_t step) {
    RowLists rows(shapes.size());
    for (int sample = ranks_.rank(); sample < samples && ranks_.rank() < trainers_; sample += trainers_) {
      for (std::size_t table = 0; table < shapes.size(); ++table) {
        for (const std::int64_t row : rows_of(step, sample, table)) rows[table].push_back(row);
      }
    }
    tables_->prefetch(rows);
    tables_->clear_sums();
    for (std::size_t table = 0; table < shapes.size(); ++table) {
      const auto width = static_cast<std::size_t>(shapes[table].width);
      std::vector<float> values(rows[table].size() * width);
      tables_->fetch(table, rows[table], values);
      for (std::size_t i = 0; i < rows[table].size(); ++i) {
        tables_->sums()[table].add(rows[table][i], std::span(values).subspan(i * width, width));
      }
    }
    EXPECT_TRUE(tables_->sum_over_ranks());
    tables_->update();
  }
  void steps(std::int64_t first, std::int64_t last) {
    for (std::int64_t step = first; step <= last; ++step) this->step(step);
  }

  // On rank 0.
  RowTable::Arrays state() const {
    RowTable::Arrays state;
    for (const DistributedTable& table : tables_->tables()) state.merge(test::read_all(table.state()));
    return state;
  }
  RowTable::Arrays values() const {
    std::vector<StreamedArray> values;
    for (const DistributedTable& table : tables_->tables()) values.push_back(table.values());
    return test::read_all(values);
  }
  EmbeddingTables& tables() { return *tables_; }

 private:
  Communicator ranks_;
  int trainers_;
  std::unique_ptr<EmbeddingTables> tables_;
};

template <class Act>
void for_each_number_of_servers(const Act& act) {
  for (int servers = 0; servers < world().size(); ++servers) {
    SCOPED_TRACE(servers);
    act(servers);
  }
}

TEST(EmbeddingTablesTest, servers_get_the_bits_of_one_rank_with_each_optimizer_and_schedule) {
  const Communicator self(MPI_COMM_SELF);
  for (const RowOptimizerOptions& options : optimizers()) {
    Training alone(self, 0, options);
    alone.steps(1, 7);
    for_each_number_of_servers([&](int servers) {
      Training shared(world(), servers, options);
      shared.steps(1, 7);
      const RowTable::Arrays state = shared.state();
      const RowTable::Arrays values = shared.values();
      if (world().rank() != 0) return;
      EXPECT_EQ(state, alone.state());
      EXPECT_EQ(values, alone.values());
    });
  }
}

TEST(EmbeddingTablesTest, a_state_continues_with_other_servers_bit_for_bit) {
  const Communicator self(MPI_COMM_SELF);
  for (const RowOptimizerOptions& options : optimizers()) {
    Training alone(self, 0, options);
    alone.steps(1, 3);
    const RowTable::Arrays state = alone.state();
    alone.steps(4, 7);
    for_each_number_of_servers([&](int servers) {
      Training resumed(world(), servers, options);
      resumed.steps(1, 5);  // what it had is replaced
      for (DistributedTable& table : resumed.tables().tables()) {
        table.assign(world().rank() == 0 ? state : RowTable::Arrays());
      }
      resumed.steps(4, 7);
      const RowTable::Arrays last = resumed.state();
      if (world().rank() == 0) {
        EXPECT_EQ(last, alone.state());
      }
    });
  }
}

TEST(EmbeddingTablesTest, assigned_values_have_the_state_before_the_first_step) {
  const RowOptimizerOptions options = optimizers().back();
  for_each_number_of_servers([&](int servers) {
    Training trained(world(), servers, options);
    trained.steps(1, 4);
    for (DistributedTable& table : trained.tables().tables()) {
      const auto count = static_cast<std::size_t>(table.held().rows() * table.held().width());
      table.assign_values(world().rank() == 0 ? std::vector<float>(count, 2.5F) : std::vector<float>());
    }
    Training fresh(world(), 0, options);
    for (DistributedTable& table : fresh.tables().tables()) table.fill([](std::int64_t /*i*/) { return 2.5F; });
    const RowTable::Arrays state = trained.state();
    const RowTable::Arrays expected = fresh.state();
    if (world().rank() == 0) {
      EXPECT_EQ(state, expected);
    }
  });
}

TEST(EmbeddingTablesTest, trainers_hold_no_rows_and_servers_all_of_them_together) {
  const RowOptimizerOptions options{.kind = RowOptimizerKind::adamw, .weight_decay = 0.1F};
  const double whole = static_cast<double>(make_embedding_tables(world(), 0, shapes, options, terms)->bytes());
  EXPECT_EQ(whole, 4 * (3 * (23 * 3 + 2 + 20) + 23 + 2 + 10));
  for (int servers = 1; servers < world().size(); ++servers) {
    const auto own = static_cast<double>(make_embedding_tables(world(), servers, shapes, options, terms)->bytes());
    EXPECT_EQ(own > 0, world().rank() >= world().size() - servers);
    EXPECT_EQ(world().sum(own), whole);
  }
}

TEST(EmbeddingTablesTest, all_ranks_learn_of_a_value_out_of_range) {
  for_each_number_of_servers([&](int servers) {
    const auto tables = make_embedding_tables(world(), servers, shapes, {}, terms);
    const int last_trainer = world().size() - servers - 1;
    for (const float value : {1.0F, std::numeric_limits<float>::quiet_NaN(), 1.0F}) {
      tables->clear_sums();
      if (world().rank() == last_trainer) tables->sums()[1].add(1, std::vector<float>{value});
      EXPECT_EQ(tables->sum_over_ranks(), value == 1);
    }
  });
}

// All ranks ask for it, so none waits for another.
TEST(EmbeddingTablesTest, a_row_beyond_the_table_is_not_asked_for) {
  if (world().size() == 1) GTEST_SKIP() << "there are no servers";
  const auto tables = make_embedding_tables(world(), 1, shapes, {}, terms);
  for (const std::int64_t row : {-1, 23}) {
    expect_error(Failure::bad_data, {"'a'", "23 rows"}, [&] { tables->prefetch({{0, row}, {}, {}}); });
  }
}

TEST(EmbeddingTablesTest, the_state_of_another_table_is_refused_on_all_ranks) {
  Training training(world(), world().size() - 1, optimizers()[0]);
  RowTable::Arrays state = training.state();
  if (world().rank() == 0) state["a.values"].pop_back();
  expect_error(Failure::bad_data, {"'a.values'", "size", "23 rows"},
               [&] { training.tables().tables()[0].assign(state); });
}

TEST(RowBlocksTest, each_row_is_on_one_rank) {
  for (const std::int64_t rows : {0, 1, 2, 3, 10, 12}) {
    for (const int ranks : {1, 2, 3, 5}) {
      const RowBlocks blocks{rows, 4, ranks};
      std::int64_t next = 0;
      for (int rank = 0; rank < 12; ++rank) {
        const RowRange range = blocks.of(rank);
        if (range.count == 0) continue;
        EXPECT_TRUE(rank >= 4 && rank < 4 + ranks);
        EXPECT_EQ(range.first, next);
        next = range.end();
      }
      EXPECT_EQ(next, rows) << ranks;
    }
  }
}

}  // namespace lockstep::embedding_tables_test
