#include "scaling/all_reduce_model.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::all_reduce_model_test {

constexpr double alpha = 20e-6;
constexpr double beta = 1 / 5e9;

// Seconds of a sum on one node whose memory costs nothing.
double truth(int ranks, double bytes) {
  const double rounds = ranks == 2 ? 1 : ranks <= 4 ? 2 : 3;
  return 2 * rounds * alpha + 2.0 * (ranks - 1) / ranks * bytes * beta;
}

std::vector<AllReduceSample> samples_of(int nodes, double (*seconds)(int, double)) {
  std::vector<AllReduceSample> samples;
  for (const int ranks : {2, 3, 4}) {
    for (const double bytes : {4e3, 1e6, 4e6, 25e6}) {
      samples.push_back({{ranks, nodes}, bytes, seconds(ranks, bytes)});
    }
  }
  return samples;
}

TEST(AllReduceModel, latency_and_bandwidth_are_found_again) {
  const AllReduceModel model = fit_all_reduces(samples_of(1, truth));
  EXPECT_NEAR(model.within.coefficients[0], alpha, 1e-9);
  EXPECT_NEAR(model.within.coefficients[1], beta, 1e-14);
  EXPECT_NEAR(model.within.coefficients[2], 0, 1e-14);
  EXPECT_NEAR(model.seconds({8, 1}, 100e6).middle, truth(8, 100e6), 1e-7);
  EXPECT_NEAR(model.latency_seconds({8, 1}), 6 * alpha, 1e-8);
}

TEST(AllReduceModel, memory_that_ranks_share_grows_with_them) {
  constexpr auto contended = [](int ranks, double bytes) {
    return (ranks == 2 ? 2e-5 : ranks <= 4 ? 4e-5 : 6e-5) + ranks * bytes * 1e-10;
  };
  const AllReduceModel model = fit_all_reduces(samples_of(1, contended));
  EXPECT_NEAR(model.seconds({8, 1}, 25e6).middle, contended(8, 25e6), 1e-6);
}

TEST(AllReduceModel, nodes_are_a_level_of_their_own) {
  std::vector<AllReduceSample> samples = samples_of(1, truth);
  const auto over_nodes = [](int nodes, double bytes) {
    return truth(2, bytes) + 2 * (nodes == 2 ? 1 : 2) * 50e-6 + 2.0 * (nodes - 1) / nodes * bytes / 1e9;
  };
  for (const int nodes : {2, 4}) {
    for (const double bytes : {4e3, 1e6, 25e6})
      samples.push_back({{2 * nodes, nodes}, bytes, over_nodes(nodes, bytes)});
  }
  const AllReduceModel model = fit_all_reduces(samples);
  ASSERT_TRUE(model.covers({16, 8}));
  EXPECT_NEAR(model.between->coefficients[0], 50e-6, 1e-8);
  EXPECT_NEAR(model.between->coefficients[1], 1e-9, 1e-13);
  const double expected = truth(2, 25e6) + 6 * 50e-6 + 2.0 * 7 / 8 * 25e6 / 1e9;
  EXPECT_NEAR(model.seconds({16, 8}, 25e6).middle, expected, 1e-6);
}

// 3 and 6 nodes took half as long again as was predicted.
TEST(AllReduceModel, a_number_of_nodes_that_is_no_power_of_two_costs_a_detour) {
  std::vector<AllReduceSample> samples;
  for (const int nodes : {2, 4}) {
    for (const double bytes : {4e3, 1e6, 25e6}) {
      samples.push_back(
          {{nodes, nodes}, bytes, 2 * (nodes == 2 ? 1 : 2) * 50e-6 + 2.0 * (nodes - 1) / nodes * bytes / 1e9});
    }
  }
  const AllReduceModel model = fit_all_reduces(samples);
  EXPECT_NEAR(model.seconds({3, 3}, 25e6).middle, 5 * 50e-6 + (1 + 2) * 25e-3, 1e-6);
  EXPECT_NEAR(model.seconds({6, 6}, 25e6).middle, 7 * 50e-6 + (1.5 + 2) * 25e-3, 1e-6);
}

TEST(AllReduceModel, doubling_between_nodes_is_told_from_halving) {
  std::vector<AllReduceSample> samples;
  const auto doubled = [](double rounds, double bytes) { return rounds * (1e-4 + bytes / 1e9); };
  for (const double bytes : {4e3, 1e6, 25e6}) {
    samples.push_back({{2, 2}, bytes, doubled(1, bytes)});
    samples.push_back({{4, 4}, bytes, doubled(2, bytes)});
  }
  const AllReduceModel model = fit_all_reduces(samples);
  EXPECT_NEAR(model.seconds({8, 8}, 25e6).middle, doubled(3, 25e6), 1e-4);
  EXPECT_NEAR(model.seconds({1024, 1024}, 25e6).middle, doubled(10, 25e6), 1e-3);
}

TEST(AllReduceModel, a_study_of_one_node_says_nothing_of_a_network) {
  const AllReduceModel model = fit_all_reduces(samples_of(1, truth));
  EXPECT_TRUE(model.covers({64, 1}));
  EXPECT_FALSE(model.covers({64, 2}));
}

TEST(AllReduceModel, scatter_widens_the_interval) {
  std::vector<AllReduceSample> samples = samples_of(1, truth);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i].seconds *= i % 2 == 0 ? 1.1 : 0.9;
  const Interval seconds = fit_all_reduces(samples).seconds({8, 1}, 25e6);
  EXPECT_LT(seconds.low, truth(8, 25e6));
  EXPECT_GT(seconds.high, truth(8, 25e6));
  EXPECT_GT(seconds.half_width(), 0.1 * seconds.middle);
  EXPECT_LT(seconds.half_width(), 0.6 * seconds.middle);
}

TEST(AllReduceModel, bus_bandwidth_is_as_nccl_tests_has_it) {
  EXPECT_DOUBLE_EQ(bus_bandwidth(2, 1e9, 1), 1e9);
  EXPECT_DOUBLE_EQ(bus_bandwidth(8, 1e9, 1), 1.75e9);
}

}  // namespace lockstep::all_reduce_model_test
