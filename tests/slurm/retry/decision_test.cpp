#include "slurm/retry/decision.hpp"

#include <gtest/gtest.h>

#include "support/messages.hpp"

namespace lockstep::decision_test {

using Names = std::vector<std::string>;

Finding of_kind(RetryKind kind) { return {Cause::failed, kind, 1, {}, "it failed"}; }
Finding on_bad_node(const std::string& node) { return {Cause::bad_node, RetryKind::transient, 71, {node}, "bad"}; }
AttemptConditions after(std::int64_t attempt, std::optional<std::int64_t> before, std::optional<std::int64_t> now) {
  AttemptConditions conditions;
  conditions.attempt = attempt;
  conditions.progress = ProgressRecord::checkpoints;
  conditions.step_before = before;
  conditions.step_after = now;
  conditions.nodes_wanted = 2;
  return conditions;
}
const AttemptConditions with_progress = after(0, std::nullopt, 40);
constexpr RetryPolicy three_retries{3, 100};

TEST(DecisionTest, what_is_done_or_would_fail_again_is_not_repeated) {
  EXPECT_EQ(decide(of_kind(RetryKind::none), {}, with_progress, three_retries, 0).action, RetryAction::stop);
  const Decision decision = decide(of_kind(RetryKind::permanent), {}, with_progress, three_retries, 0);
  EXPECT_EQ(decision.action, RetryAction::stop);
  expect_message(decision.sentence, {"no retry"});
  const Finding by_hand{Cause::cancelled, RetryKind::permanent, 75, {}, ""};
  expect_message(decide(by_hand, {}, with_progress, three_retries, 0).sentence, {"no retry", "user"});
}

TEST(DecisionTest, what_passes_is_repeated_and_not_counted) {
  const Decision decision = decide(of_kind(RetryKind::transient), {}, with_progress, {0, 100}, 0);
  EXPECT_EQ(decision.action, RetryAction::requeue);
  EXPECT_FALSE(decision.counted);
  EXPECT_EQ(decision.transient_retries, 1);
  EXPECT_EQ(decision.counted_retries, 0);
  EXPECT_EQ(decision.delay_seconds, 0);
  expect_message(decision.sentence, {"attempt 1 resumes", "step 40"});
}

TEST(DecisionTest, what_passes_but_leaves_no_newer_checkpoint_is_counted) {
  for (const AttemptConditions& fruitless : {after(0, std::nullopt, std::nullopt), after(3, 40, 40)}) {
    const Decision decision = decide(of_kind(RetryKind::transient), {}, fruitless, three_retries, 0);
    EXPECT_EQ(decision.action, RetryAction::requeue);
    EXPECT_TRUE(decision.counted);
    EXPECT_EQ(decision.counted_retries, 1);
    EXPECT_EQ(decide(of_kind(RetryKind::transient), {0, 3, {}}, fruitless, three_retries, 0).action, RetryAction::stop);
  }
  expect_message(decide(of_kind(RetryKind::transient), {}, after(0, {}, {}), three_retries, 0).sentence,
                 {"attempt 1 starts from scratch", "counted retry 1 of 3", "no newer checkpoint"});
  expect_message(decide(of_kind(RetryKind::transient), {4, 3, {}}, after(7, 40, 40), three_retries, 0).sentence,
                 {"no retry", "3 of 3", "JOB_RETRY_COUNT", "no newer checkpoint"});
}

// With a retry count of 0, a preemption ended the job of another program, which writes no checkpoint that we know.
TEST(DecisionTest, what_passes_is_never_counted_if_the_checkpoints_are_unknown) {
  AttemptConditions conditions = after(4, std::nullopt, std::nullopt);
  conditions.progress = ProgressRecord::none;
  for (const RetryKind kind : {RetryKind::transient, RetryKind::transient_conflict}) {
    const Decision decision = decide(of_kind(kind), {4, 0, {}}, conditions, {0, 100}, 0);
    EXPECT_EQ(decision.action, RetryAction::requeue);
    EXPECT_FALSE(decision.counted);
    EXPECT_EQ(decision.transient_retries, 5);
    expect_message(decision.sentence, {"attempt 5 follows"});
    EXPECT_EQ(decide(of_kind(kind), {4, 0, {}}, conditions, {0, 5}, 0).action, RetryAction::stop) << "the limit";
  }
  EXPECT_EQ(decide(of_kind(RetryKind::unknown), {}, conditions, {0, 100}, 0).action, RetryAction::stop);
}

TEST(DecisionTest, what_nobody_explains_is_repeated_as_often_as_the_user_says) {
  const Decision first = decide(of_kind(RetryKind::unknown), {5, 2, {}}, with_progress, three_retries, 0);
  EXPECT_EQ(first.action, RetryAction::requeue);
  EXPECT_TRUE(first.counted);
  EXPECT_EQ(first.transient_retries, 5);
  EXPECT_EQ(first.counted_retries, 3);
  expect_message(first.sentence, {"attempt 1 resumes", "step 40", "counted retry 3 of 3"});
  const Decision last = decide(of_kind(RetryKind::unknown), {5, 3, {}}, with_progress, three_retries, 0);
  EXPECT_EQ(last.action, RetryAction::stop);
  expect_message(last.sentence, {"no retry", "3 of 3", "JOB_RETRY_COUNT"});
  EXPECT_EQ(decide(of_kind(RetryKind::unknown), {}, with_progress, {}, 0).action, RetryAction::stop)
      << "by default nothing is repeated that nobody explains, as in OpenPAI";
}

// OpenPAI's taskRetryCount: -1 and -2.
TEST(DecisionTest, what_fails_or_ends_is_repeated_without_a_limit_if_the_user_says_so) {
  const RetryPolicy failures{retry_every_failure, 100};
  const Decision again = decide(of_kind(RetryKind::unknown), {0, 50, {}}, with_progress, failures, 0);
  EXPECT_EQ(again.action, RetryAction::requeue);
  expect_message(again.sentence, {"attempt 1 resumes", "step 40", "counted retry 51"});
  const RetryPolicy ends{retry_every_end, 100};
  for (const RetryKind kind : {RetryKind::none, RetryKind::permanent}) {
    EXPECT_EQ(decide(of_kind(kind), {}, with_progress, failures, 0).action, RetryAction::stop);
    EXPECT_EQ(decide(of_kind(kind), {}, with_progress, ends, 0).action, RetryAction::requeue);
    EXPECT_EQ(decide(of_kind(kind), {}, after(99, 1, 1), ends, 0).action, RetryAction::stop) << "the limit of attempts";
  }
  const Finding by_hand{Cause::cancelled, RetryKind::permanent, 75, {}, ""};
  EXPECT_EQ(decide(by_hand, {}, with_progress, ends, 0).action, RetryAction::stop);
}

TEST(DecisionTest, a_conflict_waits_for_a_while_of_random_length) {
  const Decision soon = decide(of_kind(RetryKind::transient_conflict), {}, with_progress, three_retries, 0);
  EXPECT_EQ(soon.action, RetryAction::requeue);
  EXPECT_FALSE(soon.counted);
  EXPECT_EQ(soon.delay_seconds, 60);
  expect_message(soon.sentence, {"attempt 1 resumes", "step 40", "1:00"});
  EXPECT_EQ(decide(of_kind(RetryKind::transient_conflict), {}, with_progress, three_retries, 0.9999).delay_seconds,
            900);
}

TEST(DecisionTest, no_job_has_more_attempts_than_the_limit) {
  const Decision decision = decide(of_kind(RetryKind::transient), {4, 0, {}}, after(4, 30, 40), {3, 5}, 0);
  EXPECT_EQ(decision.action, RetryAction::stop);
  expect_message(decision.sentence, {"no retry", "attempt 4", "LOCKSTEP_ATTEMPT_LIMIT"});
  EXPECT_EQ(decide(of_kind(RetryKind::transient), {3, 0, {}}, after(3, 30, 40), {3, 5}, 0).action,
            RetryAction::requeue);
}

TEST(DecisionTest, a_bad_node_is_avoided_with_those_that_the_user_excludes) {
  AttemptConditions conditions = with_progress;
  conditions.nodes_of_partition = {"n1", "n2", "n3", "n4", "n5"};
  conditions.nodes_avoided = {"n5", "n4"};  // n4 by an earlier attempt
  const Decision decision = decide(on_bad_node("n2"), {1, 0, {"n4"}}, conditions, three_retries, 0);
  EXPECT_EQ(decision.action, RetryAction::requeue);
  EXPECT_EQ(decision.excluded, (Names{"n4", "n2"}));
  EXPECT_EQ(decision.avoided, (Names{"n5", "n4", "n2"}));
  expect_message(decision.sentence, {"attempt 1 resumes", "step 40", "without n2"});
}

TEST(DecisionTest, a_job_is_held_only_where_excluding_leaves_too_few_nodes) {
  AttemptConditions conditions = with_progress;
  conditions.nodes_of_partition = {"n1", "n2"};
  Decision decision = decide(on_bad_node("n2"), {}, conditions, three_retries, 0);
  EXPECT_EQ(decision.action, RetryAction::hold);
  EXPECT_EQ(decision.excluded, Names{});
  EXPECT_EQ(decision.avoided, Names{});
  expect_message(decision.sentence, {"held", "n2", "1 other", "needs 2", "scontrol release"});
  conditions.nodes_of_partition = {"n1", "n2", "n3"};
  EXPECT_EQ(decide(on_bad_node("n2"), {}, conditions, three_retries, 0).action, RetryAction::requeue);
  conditions.nodes_of_partition.clear();
  EXPECT_EQ(decide(on_bad_node("n2"), {}, conditions, three_retries, 0).action, RetryAction::requeue) << "not known";
  conditions.nodes_required = {"n2"};
  decision = decide(on_bad_node("n2"), {}, conditions, three_retries, 0);
  EXPECT_EQ(decision.action, RetryAction::hold);
  expect_message(decision.sentence, {"held", "--nodelist requests n2"});
}

TEST(DecisionTest, the_nodes_are_kept_after_a_failure_and_until_the_time_limit) {
  const RetryPolicy policy{3, 100, 1800};
  AttemptConditions conditions = with_progress;
  for (const RetryKind kind : {RetryKind::unknown, RetryKind::permanent}) {
    EXPECT_EQ(decide(of_kind(kind), {}, conditions, policy, 0).hold_seconds, 1800);
    EXPECT_EQ(decide(of_kind(kind), {}, conditions, three_retries, 0).hold_seconds, 0);
  }
  EXPECT_EQ(decide(of_kind(RetryKind::transient), {}, conditions, policy, 0).hold_seconds, 0);
  EXPECT_EQ(decide(of_kind(RetryKind::none), {}, conditions, policy, 0).hold_seconds, 0);
  conditions.seconds_left = 100;
  EXPECT_EQ(decide(of_kind(RetryKind::unknown), {}, conditions, policy, 0).hold_seconds, 70);
  conditions.seconds_left = 20;
  EXPECT_EQ(decide(of_kind(RetryKind::unknown), {}, conditions, policy, 0).hold_seconds, 0);
}

Refusal refused(std::int64_t attempt, const Decision& before) {
  return find_refusal(attempt, StopRequest::none, before, three_retries).value_or(Refusal{});
}

TEST(DecisionTest, an_attempt_begins_unless_somebody_or_a_limit_has_ended_the_job) {
  Decision before;
  before.action = RetryAction::requeue;
  EXPECT_FALSE(find_refusal(1, StopRequest::none, before, three_retries));
  const std::optional<Refusal> stopped = find_refusal(200, StopRequest::for_good, {}, three_retries);
  ASSERT_TRUE(stopped.has_value()) << "a stop for good comes before any limit";
  EXPECT_EQ(stopped->cause, Cause::stopped_for_good);
  EXPECT_EQ(stopped->code, 75);
  expect_message(stopped->reason, {"stop_job", "checkpoint"});
  expect_message(refused(100, before).reason, {"100 attempts", "LOCKSTEP_ATTEMPT_LIMIT"});
  before.action = RetryAction::stop;
  before.sentence = "no retry: enough";
  EXPECT_EQ(refused(1, before).cause, Cause::too_many_attempts);
  expect_message(refused(1, before).reason, {"previous attempt", "enough"});
}

}  // namespace lockstep::decision_test
