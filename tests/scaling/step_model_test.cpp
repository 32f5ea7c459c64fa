#include "scaling/step_model.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "made_up_study.hpp"

namespace lockstep::step_model_test {

// A step of the machine whose sums are all exposed.
double truth(const MadeUpMachine& machine, int ranks, std::int64_t batch) {
  return made_up_point(machine, ranks, batch).step_seconds[0];
}

TEST(StepModel, more_ranks_than_were_measured_are_predicted) {
  const MadeUpMachine machine{.lateness = 0.01};
  const std::optional<StepModel> model = fit_steps(made_up_study(machine), 4);
  ASSERT_TRUE(model.has_value());
  EXPECT_EQ(model->max_ranks, 4);
  for (const int ranks : {6, 8, 64, 1024}) {
    const double expected = truth(machine, ranks, 32);
    EXPECT_NEAR(model->predict({{ranks, 1}, 32}).step.middle, expected, 0.01 * expected) << ranks;
  }
  EXPECT_NEAR(model->predict({{8, 1}, 8}).step.middle, truth(machine, 8, 8), 0.01 * truth(machine, 8, 8));
}

// Sums come once for all updates, after them; delays add up to the root of their number.
TEST(StepModel, local_steps_share_one_exchange) {
  const MadeUpMachine machine{.lateness = 0.01};
  const std::optional<StepModel> model = fit_steps(made_up_study(machine), 4);
  const double all = truth(machine, 8, 32);
  const StepPrediction each = model->predict({{8, 1}, 32});
  const double alone = all - each.exposed - each.imbalance;
  for (const int updates : {4, 16}) {
    const StepPrediction local = model->predict({{8, 1}, 32, {}, {updates}});
    const double expected = alone + each.exposed / updates + each.imbalance / std::sqrt(updates);
    EXPECT_NEAR(local.step.middle, expected, 0.01 * expected) << updates;
  }
  // A machine that hides all sums cannot hide that of local steps.
  StepModel hides = *model;
  hides.hidden = fit_non_negative(std::vector<Observation>{{{1}, 1, 1}, {{2}, 2, 1}});
  EXPECT_GT(hides.predict({{8, 1}, 32, {}, {2}}).exposed, 0.49 * each.exposed);
}

// Three ranks push to each of two servers, and pull from them, one after the other on its link.
TEST(StepModel, servers_are_as_slow_as_the_busiest_of_them) {
  const MadeUpMachine machine;
  Study study = made_up_study(machine);
  add_servers(study, machine, 1);
  add_servers(study, machine, 2);
  const std::optional<StepModel> model = fit_steps(study, 4);
  EXPECT_EQ(model->find_servers({8, 2}, 2), nullptr);
  EXPECT_EQ(model->find_servers({8, 1}, 3), nullptr);
  EXPECT_EQ(fit_steps(study, 2)->find_servers({8, 1}, 2), nullptr);
  const StepPrediction each = model->predict({{8, 1}, 32});
  const StepPrediction servers = model->predict({{8, 1}, 32, {}, {.servers = 2}});
  // At 4 ranks, 1 ms came to the time of the same bytes through one link.
  const double bytes_seconds = 2 * 13.0 * (1 << 20) / machine.bytes_a_second;
  EXPECT_NEAR(servers.exposed, 3 * (1e-3 + bytes_seconds), 1e-5);
  EXPECT_NEAR(servers.step.middle - servers.exposed, each.step.middle - each.exposed, 1e-6);
}

TEST(StepModel, a_compression_is_predicted_as_measured) {
  const MadeUpMachine machine{.bytes_a_second = 1e9};
  Study study = made_up_study(machine);
  StudyPoint& point = add_varied(study, {.exchange = {.powersgd_rank = 4}}, 1);
  point.buckets = {{1 << 20, 1}};
  std::vector<double>& exposed = point.parts[static_cast<std::size_t>(StepPart::exposed)];
  for (std::size_t repeat = 0; repeat < exposed.size(); ++repeat) {
    const double sums = machine.sum_seconds(4, 1 << 20);
    point.step_seconds[repeat] += sums - exposed[repeat] + 5e-3;  // 5 ms for the approximations
    exposed[repeat] = sums;
  }
  const std::optional<StepModel> model = fit_steps(study, 4);
  EXPECT_EQ(model->find_compressed(2), nullptr);
  ASSERT_NE(model->find_compressed(4), nullptr);
  const StepPrediction plain = model->predict({{8, 1}, 32});
  const StepPrediction compressed = model->predict({{8, 1}, 32, {}, {.powersgd_rank = 4}});
  EXPECT_NEAR(compressed.exposed, machine.sum_seconds(8, 1 << 20), 1e-5);
  EXPECT_NEAR(compressed.step.middle - compressed.exposed, plain.step.middle - plain.exposed + 5e-3, 1e-5);
}

TEST(StepModel, noise_widens_the_interval_around_the_truth) {
  const MadeUpMachine machine{.noise = 0.05};
  const StepPrediction prediction = fit_steps(made_up_study(machine), 4)->predict({{8, 1}, 32});
  const double expected = truth(MadeUpMachine(), 8, 32);
  EXPECT_LT(prediction.step.low, expected);
  EXPECT_GT(prediction.step.high, expected);
  EXPECT_LT(prediction.step.half_width(), 0.3 * expected);
}

TEST(StepModel, points_of_more_ranks_are_left_out) {
  Study study = made_up_study({});
  for (StudyPoint& point : study.points) {
    if (point.grid.ranks < 4) continue;
    for (std::vector<double>& seconds : point.parts) {
      for (double& value : seconds) value *= 100;
    }
  }
  EXPECT_NEAR(fit_steps(study, 2)->predict({{4, 1}, 32}).step.middle, truth({}, 4, 32), 1e-4);
}

TEST(StepModel, one_rank_alone_or_a_device_that_tells_nothing_gives_no_model) {
  Study study = made_up_study({});
  EXPECT_FALSE(fit_steps(study, 1).has_value());
  for (StudyPoint& point : study.points) point.parts = {};
  EXPECT_FALSE(fit_steps(study, 4).has_value());
}

TEST(StepModel, a_study_of_one_node_does_not_cover_two) {
  EXPECT_FALSE(fit_steps(made_up_study({}), 4)->covers({8, 2}));
  const MadeUpMachine two_a_node{.ranks_per_node = 2};
  const std::optional<StepModel> model = fit_steps(made_up_study(two_a_node), 4);
  EXPECT_TRUE(model->covers({8, 4}));
}

TEST(Exposure, a_schedule_hides_what_backward_leaves_time_for) {
  const std::vector<Bucket> buckets = {{100, 0.5}, {100, 0.75}, {10, 1}};
  const Exposure cheap =
      exposure_of(buckets, 1.0, [](std::int64_t bytes) { return 1e-3 * static_cast<double>(bytes); });
  EXPECT_NEAR(cheap.overlapped, 0.01, 1e-12);
  EXPECT_DOUBLE_EQ(cheap.after, 0.21);
  // The second waits for the first: 0.5 + 0.4 + 0.4 + 0.04 - 1.
  const Exposure dear = exposure_of(buckets, 1.0, [](std::int64_t bytes) { return 4e-3 * static_cast<double>(bytes); });
  EXPECT_NEAR(dear.overlapped, 0.34, 1e-12);
}

TEST(Buckets, are_cut_anew_with_the_same_gradients) {
  const std::vector<Bucket> buckets = {{100, 0.5}, {100, 0.9}, {10, 1}};
  const std::vector<Bucket> halves = rebucket(buckets, 50);
  ASSERT_EQ(halves.size(), 5U);
  EXPECT_DOUBLE_EQ(halves[0].ready, 0.25);
  EXPECT_DOUBLE_EQ(halves[1].ready, 0.5);
  EXPECT_DOUBLE_EQ(halves[2].ready, 0.7);
  const std::vector<Bucket> larger = rebucket(buckets, 150);
  ASSERT_EQ(larger.size(), 3U);
  EXPECT_EQ(larger[0].bytes, 150);
  EXPECT_DOUBLE_EQ(larger[0].ready, 0.7);
  EXPECT_EQ(larger[1].bytes, 50);
  EXPECT_DOUBLE_EQ(larger[1].ready, 0.9);
  EXPECT_EQ(larger[2].bytes, 10);
}

TEST(Buckets, grow_where_latency_is_what_counts) {
  const MadeUpMachine slow_start{.latency_seconds = 2e-3, .bytes_a_second = 1e11};
  const BucketAdvice advice = advise_bucket(*fit_steps(made_up_study(slow_start), 4), {{4, 1}, 32});
  EXPECT_EQ(advice.bytes, 16 << 20);
  EXPECT_GT(advice.gain, 0.1);
  const MadeUpMachine narrow{.latency_seconds = 1e-7, .bytes_a_second = 5e8};
  EXPECT_LT(advise_bucket(*fit_steps(made_up_study(narrow), 4), {{4, 1}, 32}).gain, 0.01);
}

}  // namespace lockstep::step_model_test
