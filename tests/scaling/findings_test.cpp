// Each study is made up so that one thing is wrong with it.
#include "scaling/findings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "made_up_study.hpp"
#include "support/messages.hpp"

namespace lockstep::findings_test {

using testing::HasSubstr;

// Of the first finding of this cause; empty where there is none.
std::string sentence_of(const Study& study, LossCause cause) {
  for (const ScalingFinding& finding : judge(study)) {
    if (finding.cause == cause) return finding.sentence;
  }
  return {};
}

std::vector<LossCause> causes_of(const Study& study, Scaling scaling) {
  std::vector<LossCause> causes;
  for (const ScalingFinding& finding : judge(study)) {
    if (finding.scaling == scaling) causes.push_back(finding.cause);
  }
  return causes;
}

StudyPoint& largest_weak(Study& study) {
  return *std::ranges::find_if(study.points, [&](const StudyPoint& point) {
    return point.grid.ranks == 4 && point.batch_per_rank == study.weak_batch;
  });
}

// One rank takes so much longer before it comes to the sums, and the others wait for it.
void make_late(Study& study, double seconds, double seconds_of_input) {
  for (StudyPoint& point : study.points) {
    if (point.grid.ranks == 1) continue;
    RankTimes& late = point.by_rank[1];
    late.arrival += seconds;
    late.input += seconds_of_input;
    const double waited = seconds * (point.grid.ranks - 1) / point.grid.ranks;
    for (std::size_t repeat = 0; repeat < point.step_seconds.size(); ++repeat) {
      point.parts[static_cast<std::size_t>(StepPart::imbalance)][repeat] += waited;
      point.parts[static_cast<std::size_t>(StepPart::forward)][repeat] += seconds - waited;
      point.step_seconds[repeat] += seconds;
    }
  }
}

TEST(Loss, is_the_sum_of_what_its_parts_lose) {
  const Study study = made_up_study({.lateness = 0.05});
  const std::vector<const StudyPoint*> points = points_of(study, Scaling::strong);
  ASSERT_EQ(points.size(), 3U);
  const Loss loss = loss_between(*points.front(), *points.back());
  double sum = 0;
  for (const double part : loss.parts) sum += part;
  EXPECT_NEAR(sum, loss.whole.middle, 1e-9);
  EXPECT_GT(loss.parts[static_cast<std::size_t>(StepPart::optimizer)], 0.05);
  EXPECT_NEAR(loss.parts[static_cast<std::size_t>(StepPart::forward)], 0, 1e-9);
}

TEST(Findings, all_well) {
  const Study study = made_up_study({.optimizer_seconds = 1e-5, .latency_seconds = 1e-6, .bytes_a_second = 1e12});
  EXPECT_EQ(causes_of(study, Scaling::weak), std::vector{LossCause::none});
  EXPECT_EQ(causes_of(study, Scaling::strong), std::vector{LossCause::none});
  expect_message(sentence_of(study, LossCause::none), {"weak", "4 ranks", "99.9 % (± 0.0)", "1 rank"});
}

TEST(Findings, latency_bound) {
  const Study study = made_up_study({.latency_seconds = 5e-4, .bytes_a_second = 1e11});
  EXPECT_EQ(causes_of(study, Scaling::weak), (std::vector{LossCause::loss, LossCause::latency}));
  expect_message(sentence_of(study, LossCause::loss),
                 {"weak", "19.4 % (± 0.0)", "1 to 4 ranks: 19.4 % ", describe(StepPart::exposed)});
  expect_message(sentence_of(study, LossCause::latency), {"--bucket-mib", "98"});
}

TEST(Findings, one_bucket_is_one) {
  const Study study = made_up_study({.latency_seconds = 5e-3, .bytes_a_second = 1e11, .bucket_bytes = {1 << 20}});
  expect_message(sentence_of(study, LossCause::latency), {"latency-bound", "1 bucket ", "1.05 MB"});
}

TEST(Findings, bandwidth_bound) {
  const Study study = made_up_study({.latency_seconds = 1e-6, .bytes_a_second = 1e9});
  EXPECT_EQ(causes_of(study, Scaling::weak), (std::vector{LossCause::loss, LossCause::bandwidth}));
  expect_message(sentence_of(study, LossCause::bandwidth), {"20.5"});
}

TEST(Findings, one_rank_computes_slowly) {
  Study study = made_up_study({.bytes_a_second = 1e12});
  make_late(study, 8e-3, 0);
  const std::vector<LossCause> causes = causes_of(study, Scaling::weak);
  EXPECT_TRUE(std::ranges::find(causes, LossCause::slow_rank) != causes.end());
  expect_message(sentence_of(study, LossCause::slow_rank), {"rank 1 on node0", "8.0 ms (", "cores"});
  Study nodes = made_up_study({.bytes_a_second = 1e12, .ranks_per_node = 1});
  make_late(nodes, 8e-3, 0);
  expect_message(sentence_of(nodes, LossCause::slow_rank), {"rank 1 on ", "8.0 ms ("});
}

TEST(Findings, of_two_ranks_one_is_late) {
  Study study = made_up_study({.bytes_a_second = 1e12, .ranks = {1, 2}});
  make_late(study, 8e-3, 0);
  expect_message(sentence_of(study, LossCause::slow_rank), {"rank 1 on node0", "8.0 ms ("});
}

// One repeat in eight, in which the sums took as long as ten steps, once was the cause that was named.
TEST(Findings, a_disturbed_repeat_is_no_cause) {
  Study study = made_up_study({.bytes_a_second = 1e12, .lateness = 0.3, .repeats = 9});
  for (StudyPoint& point : study.points) {
    if (point.grid.ranks < 4) continue;
    point.parts[static_cast<std::size_t>(StepPart::exposed)][0] += 0.02;
    point.step_seconds[0] += 0.02;
  }
  for (const LossCause cause : causes_of(study, Scaling::weak)) {
    EXPECT_TRUE(cause != LossCause::latency && cause != LossCause::bandwidth);
  }
  EXPECT_THAT(sentence_of(study, LossCause::loss), Not(HasSubstr(std::string(describe(StepPart::exposed)))));
}

TEST(Findings, one_rank_reads_slowly) {
  Study study = made_up_study({.bytes_a_second = 1e12});
  make_late(study, 8e-3, 7e-3);
  expect_message(sentence_of(study, LossCause::slow_rank), {"rank 1 on node0", "samples"});
}

TEST(Findings, ranks_take_turns_in_being_late) {
  Study study = made_up_study({.bytes_a_second = 1e12, .lateness = 0.2});
  study.cores = 2;
  expect_message(sentence_of(study, LossCause::uneven_ranks), {"4 ranks", "6.7 ms", "4 ranks share 2 cores"});
  largest_weak(study).other_cores = {0.75};
  expect_message(sentence_of(study, LossCause::uneven_ranks), {"other programs", "4 ranks share 2 cores"});
}

TEST(Findings, input_is_slow_whatever_the_loss) {
  const Study study = made_up_study({.input_seconds = 20e-3, .latency_seconds = 1e-6, .bytes_a_second = 1e12});
  EXPECT_EQ(causes_of(study, Scaling::weak), (std::vector{LossCause::none, LossCause::slow_input}));
  expect_message(sentence_of(study, LossCause::slow_input), {"4 ranks", "20.0 ms", "37.0 %", "--loader-threads"});
}

TEST(Findings, ranks_disturb_each_other) {
  Study study = made_up_study({.bytes_a_second = 1e12});
  StudyPoint& point = largest_weak(study);
  for (std::size_t repeat = 0; repeat < point.step_seconds.size(); ++repeat) {
    point.parts[static_cast<std::size_t>(StepPart::backward)][repeat] += 16e-3;
    point.step_seconds[repeat] += 16e-3;
  }
  expect_message(sentence_of(study, LossCause::slow_computing), {"4 ranks", "50.0 %", "memory", "not measured"});
  point.other_cores = {0.1, 0, 0.05};
  expect_message(sentence_of(study, LossCause::slow_computing), {"4 ranks", "50.0 %", "memory"});
  // Memory was blamed.
  point.other_cores = {3.5, 3.3, 0};
  expect_message(sentence_of(study, LossCause::slow_computing), {"4 ranks", "50.0 %", "other programs"});
  expect_message(sentence_of(study, LossCause::loss), {"3.3 of the 8 cores"});
}

TEST(Findings, an_update_does_not_shrink_with_the_batch) {
  const Study study = made_up_study({.optimizer_seconds = 10e-3, .bytes_a_second = 1e12});
  EXPECT_EQ(causes_of(study, Scaling::weak), std::vector{LossCause::none});
  EXPECT_EQ(causes_of(study, Scaling::strong), (std::vector{LossCause::loss, LossCause::update}));
  expect_message(sentence_of(study, LossCause::update), {"optimizer", "10.0 ms"});
}

TEST(Findings, noise_too_large_to_judge) {
  Study study = made_up_study({});
  StudyPoint& point = largest_weak(study);
  for (std::size_t repeat = 0; repeat < point.step_seconds.size(); ++repeat) {
    point.step_seconds[repeat] *= repeat % 2 == 0 ? 1.5 : 0.7;
  }
  EXPECT_EQ(causes_of(study, Scaling::weak), std::vector{LossCause::too_noisy});
  expect_message(sentence_of(study, LossCause::too_noisy), {"weak", "4 ranks", "5 repeats", "--repeats", "--seconds"});
  point.other_cores = {1.5};
  expect_message(sentence_of(study, LossCause::too_noisy), {"1.5 of the 8 cores"});
}

TEST(Findings, a_loss_too_uncertain_for_causes_is_not_judged) {
  Study study = made_up_study({.bytes_a_second = 1e12});
  StudyPoint& point = largest_weak(study);
  for (std::size_t repeat = 0; repeat < point.step_seconds.size(); ++repeat) {
    point.step_seconds[repeat] *= repeat % 2 == 0 ? 3.3 : 2;
  }
  EXPECT_EQ(causes_of(study, Scaling::weak), std::vector{LossCause::too_noisy});
  expect_message(sentence_of(study, LossCause::too_noisy), {"weak", "70.0 % (± 17.1)"});
}

TEST(Findings, what_was_measured_once_is_not_judged) {
  expect_message(sentence_of(made_up_study({.repeats = 1}), LossCause::too_noisy), {"--repeats"});
}

TEST(Findings, a_device_that_tells_nothing_still_has_a_loss) {
  Study study = made_up_study({.bytes_a_second = 1e9});
  for (StudyPoint& point : study.points) {
    point.parts = {};
    point.buckets.clear();
    point.by_rank.clear();
  }
  EXPECT_EQ(causes_of(study, Scaling::weak), std::vector{LossCause::loss});
  expect_message(sentence_of(study, LossCause::loss), {"1 to 4 ranks", "device"});
}

TEST(Findings, one_rank_count_is_not_judged) { EXPECT_TRUE(judge(made_up_study({.ranks = {1}})).empty()); }

TEST(Sweeps, each_value_is_told_beside_the_usual_one) {
  Study study = made_up_study({});
  add_varied(study, {.threads = 2}, 1.62);
  add_varied(study, {.bucket_mib = 1}, 0.979);
  add_varied(study, {.bucket_mib = 25}, 1.05);
  add_varied(study, {.precision = "bf16"}, 1.4);
  add_varied(study, {.exchange = {.local_steps = 16}}, 2.1);
  add_varied(study, {.exchange = {.servers = 1}}, 2);
  add_varied(study, {.exchange = {.powersgd_rank = 4}}, 0.8);
  const std::vector<std::string> sentences = judge_sweeps(study);
  ASSERT_EQ(sentences.size(), 7U);
  expect_message(sentences[0], {"4 ranks", "2 threads", "1.620", "(± 0.000)", "1 thread "});
  expect_message(sentences[1], {"4 ranks", "1 MiB", "2.1 % (± 0.0) slower", "4 MiB"});
  expect_message(sentences[2], {"4 ranks", "25 MiB", "5.0 % (± 0.0) faster", "4 MiB"});
  expect_message(sentences[3], {"4 ranks", "bf16", "1.400", "(± 0.000)", "fp32"});
  expect_message(sentences[4], {"4 ranks", "--sync local --local-steps 16", "2.10", "--sync all-reduce"});
  expect_message(sentences[5], {"--sync ps --servers 1", "1.50"});  // three of four ranks have samples
  expect_message(sentences[6], {"--compress powersgd:4", "0.80"});
}

TEST(Sweeps, intervals_are_of_repeats_and_noise_is_not_judged) {
  Study study = made_up_study({});
  StudyPoint& threads = add_varied(study, {.threads = 2}, 1.62);
  for (std::size_t repeat = 0; repeat < 5; ++repeat) threads.step_seconds[repeat] *= repeat % 2 == 0 ? 1.02 : 0.98;
  StudyPoint& buckets = add_varied(study, {.bucket_mib = 1}, 1);
  for (std::size_t repeat = 0; repeat < 5; ++repeat) buckets.step_seconds[repeat] *= repeat % 2 == 0 ? 1.02 : 0.98;
  const std::vector<std::string> sentences = judge_sweeps(study);
  ASSERT_EQ(sentences.size(), 2U);
  expect_message(sentences[0], {"4 ranks", "2 threads", "1.588", "(± 0.057)", "1 thread "});
  expect_message(sentences[1], {"1 MiB", "4 MiB", "2.0 % slower", "± 3.5", "5 repeats", "--repeats", "--seconds"});
  Study starved = made_up_study({});
  add_varied(starved, {.threads = 3}, 0.05).step_seconds[0] *= 2;
  expect_message(judge_sweeps(starved)[0], {"3 threads", "0.050", "(± 0.016)", "12 threads share 8 cores"});
  Study once = made_up_study({.repeats = 1});
  add_varied(once, {.threads = 2}, 1.62);
  expect_message(judge_sweeps(once)[0], {"2 threads", "1 thread ", "--repeats 3"});
}

// The difference was unclear, although its whole interval was on one side of none.
TEST(Sweeps, a_difference_is_clear_if_its_interval_excludes_none) {
  Study study = made_up_study({});
  StudyPoint& clear = add_varied(study, {.threads = 2}, 2);
  for (std::size_t repeat = 0; repeat < 5; ++repeat) clear.step_seconds[repeat] *= repeat % 2 == 0 ? 1.15 : 0.9;
  StudyPoint& unclear = add_varied(study, {.threads = 4}, 2);
  for (std::size_t repeat = 0; repeat < 5; ++repeat) unclear.step_seconds[repeat] *= repeat % 2 == 0 ? 1.3 : 0.8;
  const std::vector<std::string> sentences = judge_sweeps(study);
  expect_message(sentences[0], {"1.739 times (± 0.424)"});
  expect_message(sentences[1], {"53.8 % faster (± 84.4)", "--repeats"});
}

// Points of other setups once would have stood among those of rank counts.
TEST(Sweeps, change_nothing_that_is_said_of_ranks) {
  const Study plain = made_up_study({.latency_seconds = 5e-4, .bytes_a_second = 1e11});
  Study study = plain;
  add_varied(study, {.threads = 2}, 2);
  add_varied(study, {.bucket_mib = 1}, 0.5);
  ASSERT_EQ(judge(study).size(), judge(plain).size());
  for (std::size_t i = 0; i < judge(plain).size(); ++i) EXPECT_EQ(judge(study)[i].sentence, judge(plain)[i].sentence);
  EXPECT_EQ(check_predictions(study)[0].sentence(), check_predictions(plain)[0].sentence());
  EXPECT_TRUE(judge_sweeps(plain).empty());
}

TEST(Accuracy, of_larger_batches_is_told_beside_that_of_the_smallest) {
  Study study = made_up_study({});
  EXPECT_TRUE(judge_accuracy(study).empty());
  study.accuracy_epochs = 3;
  study.accuracies = {{128, {0.672, 0.673, 0.674}, ""},
                      {256, {0.669, 0.672, 0.678}, ""},
                      {512, {0.668, 0.669, 0.671}, ""},
                      {4096, {0.580, 0.581, 0.582}, ""},
                      {8192, {}, "its training diverged"}};
  const std::vector<std::string> sentences = judge_accuracy(study);
  ASSERT_EQ(sentences.size(), 4U);
  expect_message(sentences[0],
                 {"256", "128", "67.3 %", "3 seeds", "+0.0 ± 1.1", "--accuracy-seeds", "--accuracy-epochs"});
  // It was unclear: the intervals of both accuracies are together wider than that of their difference.
  expect_message(sentences[1], {"512", "66.9 %", "3 epochs", "128", "67.3 %", "-0.4 ± 0.3"});
  expect_message(sentences[2], {"4096", "58.1 %", "3 epochs", "128", "67.3 %", "-9.2 ± 0.2"});
  expect_message(sentences[3], {"8192", "its training diverged"});
  study.accuracies = {{128, {0.672}, ""}, {4096, {0.581}, ""}};
  expect_message(judge_accuracy(study)[0], {"4096", "128", "58.1 %", "67.2 %", "--accuracy-seeds 3"});
}

TEST(CheckedPrediction, the_largest_rank_count_is_predicted_from_the_others) {
  const std::vector<CheckedPrediction> checks = check_predictions(made_up_study({}));
  ASSERT_EQ(checks.size(), 2U);
  EXPECT_EQ(checks[0].scaling, Scaling::weak);
  EXPECT_EQ(checks[0].fitted_up_to, 2);
  EXPECT_NEAR(checks[0].error(), 0, 0.01);
  expect_message(checks[0].sentence(), {"weak", "2 ranks", "38.5 ms", "4 ranks"});
  EXPECT_TRUE(check_predictions(made_up_study({.ranks = {1, 2}})).empty());
}

TEST(CheckedPrediction, ranks_without_cores_of_their_own_are_told) {
  Study study = made_up_study({});
  EXPECT_THAT(check_predictions(study)[0].sentence(), Not(HasSubstr("cores")));
  study.cores = 2;
  EXPECT_THAT(check_predictions(study)[0].sentence(), HasSubstr("4 ranks share 2 cores"));
}

}  // namespace lockstep::findings_test
