#include "embedding/row_table.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "support/messages.hpp"

namespace lockstep::row_table_test {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

// A table [4, 2] with values i / 8 + 1/4.
RowTable small_table(const RowOptimizerOptions& options) {
  RowTable table("t", 4, 2, options);
  std::vector<float> values;
  for (int i = 0; i < 8; ++i) values.push_back(static_cast<float>(i) / 8 + 0.25F);
  table.set_values(values);
  return table;
}
const std::vector<RowGradients> three_steps{
    {{0, 2}, {0.5F, -1, 0.25F, 2}}, {{2, 3}, {-0.75F, 0.125F, 1.5F, -0.5F}}, {{0, 2}, {0.0625F, 0.5F, -1, 0.375F}}};

std::vector<float> after_three_steps(const RowOptimizerOptions& options) {
  RowTable table = small_table(options);
  for (const RowGradients& gradients : three_steps) table.update(gradients);
  return table.values();
}

LrSchedule schedule_of(double rate, Schedule kind, std::int64_t steps) {
  LearningRate options;
  options.rate = rate;
  options.base_batch = 0;
  options.schedule = kind;
  options.power = 1;
  return {options, 1, steps, 100};
}

void expect_near(const std::vector<float>& values, const std::vector<float>& expected) {
  EXPECT_THAT(values, Pointwise(FloatNear(2e-7F), expected));
}

// torch.nn.Embedding(4, 2, sparse=True) with the optimizer named, PyTorch 2.15, eps 1e-8 (SparseAdam: 1e-20).
TEST(RowTableTest, moves_as_with_pytorchs_sparse_sgd) {
  expect_near(after_three_steps({.kind = RowOptimizerKind::sgd, .learning_rate = 0.1F}),
              {0.193750009F, 0.424999982F, 0.5F, 0.625F, 0.900000036F, 0.625F, 0.850000024F, 1.17499995F});
}
TEST(RowTableTest, moves_as_with_pytorchs_sparse_adagrad) {
  expect_near(after_three_steps({.kind = RowOptimizerKind::adagrad, .learning_rate = 0.1F}),
              {0.137596533F, 0.430278629F, 0.5F, 0.625F, 0.823314726F, 0.750367999F, 0.899999976F, 1.22500002F});
}
TEST(RowTableTest, moves_as_with_pytorchs_sparse_adam) {
  expect_near(after_three_steps({.kind = RowOptimizerKind::adamw, .learning_rate = 0.1F, .epsilon = 1e-20F}),
              {0.08499524F, 0.497864038F, 0.5F, 0.625F, 0.773225546F, 0.637379408F, 0.925586343F, 1.19941366F});
}

// torch.nn.Embedding(4, 2) and torch.optim.SGD(weight_decay=0.5): the decay reaches untouched rows, too.
TEST(RowTableTest, weight_decay_reaches_all_rows_as_with_pytorchs_dense_sgd) {
  expect_near(
      after_three_steps({.kind = RowOptimizerKind::sgd, .learning_rate = 0.1F, .weight_decay = 0.5F}),
      {0.16296874F, 0.361765623F, 0.428687483F, 0.535859346F, 0.791718721F, 0.520328164F, 0.714874983F, 1.01204693F});
}

// A torch.optim.RMSprop(alpha=0.9) for each row, which steps when the row is touched.
TEST(RowTableTest, touched_rows_move_as_with_pytorchs_rmsprop) {
  expect_near(after_three_steps({.kind = RowOptimizerKind::rmsprop, .learning_rate = 0.1F, .decay_rate = 0.9F}),
              {-0.107537344F, 0.54378581F, 0.5F, 0.625F, 0.988722444F, 0.473621666F, 0.683772206F, 1.44122767F});
}

// torch.optim.AdamW(weight_decay=0.5), all rows in all steps, with gradients (i - 3) * step / 4.
TEST(RowTableTest, touched_rows_move_as_with_pytorchs_adamw) {
  RowTable table = small_table({.kind = RowOptimizerKind::adamw, .learning_rate = 0.1F, .weight_decay = 0.5F});
  for (int step = 1; step <= 3; ++step) {
    RowGradients gradients{{0, 1, 2, 3}, {}};
    for (int i = 0; i < 8; ++i) gradients.values.push_back(static_cast<float>((i - 3) * step) / 4);
    table.update(gradients);
  }
  expect_near(table.values(), {0.492086142F, 0.599258006F, 0.706429899F, 0.535859346F, 0.365288854F, 0.472460747F,
                               0.579632521F, 0.686804473F});
}

// The same rule for all rows in each step, in double precision.
TEST(RowTableTest, catch_up_equals_decay_in_every_step) {
  constexpr double rate = 0.05;
  constexpr double decay = 0.02;
  RowTable table("t", 50, 1, {.kind = RowOptimizerKind::sgd, .learning_rate = 0.05F, .weight_decay = 0.02F});
  std::vector<double> dense(50);
  for (std::size_t i = 0; i < dense.size(); ++i) dense[i] = std::sin(static_cast<double>(i));
  table.set_values(std::vector<float>(dense.begin(), dense.end()));
  for (std::int64_t step = 0; step < 1000; ++step) {
    const std::int64_t touched = step * step % 41;  // rows from 41 on are never touched
    for (double& value : dense) value *= 1 - rate * decay;
    dense[static_cast<std::size_t>(touched)] -= rate * 0.1;
    table.update({{touched}, {0.1F}});
  }
  const std::vector<float> values = table.values();
  std::vector<float> fetched(50);
  std::vector<std::int64_t> rows(50);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int64_t>(i);
  table.fetch(rows, fetched);
  EXPECT_EQ(fetched, values);
  for (std::size_t i = 0; i < dense.size(); ++i) EXPECT_NEAR(static_cast<double>(values[i]), dense[i], 1e-5) << i;
  EXPECT_NEAR(static_cast<double>(values[45]), std::sin(45.0) * std::pow(1 - rate * decay, 1000), 1e-6);
}

// torch.nn.Embedding(4, 2), PyTorch 2.15, torch.optim.SGD(weight_decay=0.5) with LambdaLR: rates 0.1, 0.05, 0.
TEST(RowTableTest, with_a_schedule_decay_reaches_all_rows_as_with_pytorchs_dense_sgd) {
  RowOptimizerOptions options{.kind = RowOptimizerKind::sgd, .learning_rate = 0.1F, .weight_decay = 0.5F};
  options.schedule = schedule_of(0.1, Schedule::poly, 2);
  expect_near(after_three_steps(options), {0.182812497F, 0.444843769F, 0.46312499F, 0.578906238F, 0.707812488F,
                                           0.609218776F, 0.851249993F, 1.06703126F});
}

// The same rule for all rows in each step, in double precision; a resumed table has the same bits.
TEST(RowTableTest, catch_up_follows_the_schedule) {
  constexpr double decay = 0.02;
  constexpr std::int64_t steps = 1000;
  RowOptimizerOptions options{.kind = RowOptimizerKind::sgd, .learning_rate = 0.5F, .weight_decay = 0.02F};
  options.schedule = schedule_of(0.5, Schedule::one_cycle, steps);
  RowTable table("t", 50, 1, options);
  RowTable resumed("t", 50, 1, options);
  std::vector<double> dense(50);
  for (std::size_t i = 0; i < dense.size(); ++i) dense[i] = std::sin(static_cast<double>(i));
  table.set_values(std::vector<float>(dense.begin(), dense.end()));
  double kept = 1;
  for (std::int64_t step = 0; step < steps; ++step) {
    if (step == steps / 2) resumed.assign(table.state());
    const std::int64_t touched = step * step % 41;  // rows from 41 on are never touched
    const double rate = options.schedule->at(step);
    for (double& value : dense) value *= 1 - rate * decay;
    kept *= 1 - rate * decay;
    dense[static_cast<std::size_t>(touched)] -= rate * 0.1;
    table.update({{touched}, {0.1F}});
    if (step >= steps / 2) resumed.update({{touched}, {0.1F}});
  }
  const std::vector<float> values = table.values();
  for (std::size_t i = 0; i < dense.size(); ++i) EXPECT_NEAR(static_cast<double>(values[i]), dense[i], 1e-5) << i;
  EXPECT_NEAR(static_cast<double>(values[45]), std::sin(45.0) * kept, 1e-6);
  EXPECT_EQ(resumed.values(), values);
  EXPECT_EQ(resumed.state(), table.state());
}

TEST(RowTableTest, a_schedule_whose_decay_leaves_nothing_of_a_value_is_refused) {
  RowOptimizerOptions options{.kind = RowOptimizerKind::sgd, .learning_rate = 2, .weight_decay = 0.5F};
  RowTable("t", 4, 2, options);
  options.schedule = schedule_of(2, Schedule::cosine, 10);
  expect_error(Failure::usage, {"--lr 2", "--weight-decay 0.5", "--schedule"}, [&] { RowTable("t", 4, 2, options); });
}

TEST(RowTableTest, rows_are_fetched_in_any_order_and_number) {
  const RowTable table = small_table({});
  std::vector<float> values(6);
  table.fetch(std::vector<std::int64_t>{3, 0, 3}, values);
  EXPECT_THAT(values, ElementsAre(1, 1.125F, 0.25F, 0.375F, 1, 1.125F));
}

TEST(RowTableTest, a_state_continues_bit_for_bit) {
  for (const RowOptimizerKind kind :
       {RowOptimizerKind::sgd, RowOptimizerKind::adagrad, RowOptimizerKind::rmsprop, RowOptimizerKind::adamw}) {
    const bool decays = kind == RowOptimizerKind::sgd || kind == RowOptimizerKind::adamw;
    const RowOptimizerOptions options{.kind = kind, .learning_rate = 0.1F, .weight_decay = decays ? 0.3F : 0.0F};
    RowTable whole = small_table(options);
    RowTable resumed("t", 4, 2, options);
    for (std::size_t step = 0; step < three_steps.size(); ++step) {
      if (step == 1) resumed.assign(whole.state());
      whole.update(three_steps[step]);
      if (step >= 1) resumed.update(three_steps[step]);
    }
    EXPECT_EQ(resumed.steps(), 3);
    EXPECT_EQ(resumed.state(), whole.state());
    EXPECT_EQ(resumed.values(), whole.values());
  }
}

TEST(RowTableTest, a_row_beyond_the_table_is_refused_before_anything_changes) {
  RowTable table = small_table({.learning_rate = 0.1F});
  const RowTable::Arrays before = table.state();
  std::vector<float> values(4);
  expect_error(Failure::bad_data, {"4", "'t'", "4 rows"}, [&] {
    table.fetch(std::vector<std::int64_t>{0, 4}, values);
  });
  expect_error(Failure::bad_data, {"-1", "'t'"}, [&] { table.update({{0, -1}, {1, 1, 1, 1}}); });
  EXPECT_EQ(table.state(), before);
}

TEST(RowTableTest, parts_have_the_bits_of_the_whole) {
  const RowOptimizerOptions options{.kind = RowOptimizerKind::adamw, .learning_rate = 0.1F, .weight_decay = 0.3F};
  RowTable whole = small_table(options);
  RowTable part({"t", 4, 2}, {2, 2}, options);
  part.set_values(whole.array(0).subspan(4));
  for (const RowGradients& gradients : three_steps) {
    whole.update(gradients);
    RowGradients own;
    for (std::size_t i = 0; i < gradients.rows.size(); ++i) {
      if (gradients.rows[i] < 2) continue;
      own.rows.push_back(gradients.rows[i]);
      own.values.insert(own.values.end(), {gradients.values[2 * i], gradients.values[2 * i + 1]});
    }
    part.update(own);
  }
  for (std::size_t i = 0; i < whole.arrays().size(); ++i) {
    const std::span<const float> rows = std::as_const(whole).array(i).last(part.array(i).size());
    EXPECT_TRUE(std::ranges::equal(part.array(i), rows)) << whole.arrays()[i].name;
  }
  const std::vector<float> all = whole.values();
  EXPECT_EQ(part.values(), std::vector<float>(all.begin() + 4, all.end()));
  EXPECT_EQ(2 * part.bytes(), whole.bytes());
  std::vector<float> values(4);
  expect_error(Failure::bad_data, {"row 1", "'t'", "2 rows from row 2"}, [&] {
    part.fetch(std::vector<std::int64_t>{2, 1}, values);
  });
}

TEST(RowTableTest, a_state_of_another_table_is_refused) {
  RowTable table = small_table({.kind = RowOptimizerKind::adagrad});
  RowTable::Arrays state = table.state();
  state["t.squares"].pop_back();
  expect_error(Failure::bad_data, {"'t'", "'t.squares'", "size", "4 rows", "width 2"}, [&] { table.assign(state); });
  const RowTable sgd = small_table({});
  expect_error(Failure::bad_data, {"'t.squares'", "missing"}, [&] { table.assign(sgd.state()); });
}

TEST(RowTableTest, impossible_numbers_of_steps_are_damage) {
  RowTable table = small_table({.weight_decay = 0.1F});
  const RowTable::Arrays before = table.state();
  for (const float steps : {-1.0F, 0.5F, 1e9F, std::nanf("")}) {
    RowTable::Arrays state = before;
    state["t.steps"][0] = steps;
    expect_error(Failure::bad_data, {"'t'", "steps"}, [&] { table.assign(state); });
  }
  RowTable::Arrays late = before;
  late["t.last_steps"][1] = late["t.steps"][0] + 1;
  expect_error(Failure::bad_data, {"'t'", "steps"}, [&] { table.assign(late); });
  EXPECT_EQ(table.state(), before);
}

TEST(RowTableTest, weight_decay_needs_an_optimizer_that_can_catch_up) {
  expect_error(Failure::usage, {"adagrad", "rmsprop", "--weight-decay 0.1"},
               [] { row_rule({.kind = RowOptimizerKind::rmsprop, .weight_decay = 0.1F}); });
}

TEST(RowTableTest, states_what_it_takes) {
  EXPECT_EQ(RowTable("t", 100, 8, {}).bytes(), 4 * 100 * 8);
  EXPECT_EQ(RowTable("t", 100, 8, {.weight_decay = 0.1F}).bytes(), 4 * (100 * 8 + 100));
  EXPECT_EQ(RowTable("t", 100, 8, {.kind = RowOptimizerKind::adamw}).bytes(), 4 * 3 * 100 * 8);
}

}  // namespace lockstep::row_table_test
