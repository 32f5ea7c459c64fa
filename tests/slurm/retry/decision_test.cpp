#include "slurm/retry/decision.hpp"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using Names = std::vector<std::string>;

Finding of_kind(RetryKind kind) { return {Cause::failed, kind, 1, {}, "it failed"}; }
Finding on_bad_node(const std::string& node) { return {Cause::bad_node, RetryKind::transient, 71, {node}, "bad"}; }
AttemptConditions after(std::int64_t attempt, std::optional<std::int64_t> before, std::optional<std::int64_t> now) {
  AttemptConditions prospects;
  prospects.attempt = attempt;
  prospects.step_before = before;
  prospects.step_after = now;
  prospects.nodes_wanted = 2;
  return prospects;
}
const AttemptConditions with_progress = after(0, std::nullopt, 40);
constexpr RetryPolicy three_retries{3, 100};

TEST(DecisionTest, what_is_done_or_would_fail_again_is_not_repeated) {
  EXPECT_EQ(decide(of_kind(RetryKind::none), {}, with_progress, three_retries, 0).action, RetryAction::stop);
  const Decision decision = decide(of_kind(RetryKind::permanent), {}, with_progress, three_retries, 0);
  EXPECT_EQ(decision.action, RetryAction::stop);
  EXPECT_EQ(decision.sentence, "no retry: another attempt would fail in the same way");
  const Finding by_hand{Cause::cancelled, RetryKind::permanent, 75, {}, ""};
  EXPECT_EQ(decide(by_hand, {}, with_progress, three_retries, 0).sentence, "no retry: a user ended the job");
}

TEST(DecisionTest, what_passes_is_repeated_and_not_counted) {
  const Decision decision = decide(of_kind(RetryKind::transient), {}, with_progress, {0, 100}, 0);
  EXPECT_EQ(decision.action, RetryAction::requeue);
  EXPECT_FALSE(decision.counted);
  EXPECT_EQ(decision.transient_retries, 1);
  EXPECT_EQ(decision.counted_retries, 0);
  EXPECT_EQ(decision.delay_seconds, 0);
  EXPECT_EQ(decision.sentence, "attempt 1 resumes from the checkpoint of step 40");
}

TEST(DecisionTest, what_passes_but_leaves_no_newer_checkpoint_is_counted) {
  for (const AttemptConditions& fruitless : {after(0, std::nullopt, std::nullopt), after(3, 40, 40)}) {
    const Decision decision = decide(of_kind(RetryKind::transient), {}, fruitless, three_retries, 0);
    EXPECT_EQ(decision.action, RetryAction::requeue);
    EXPECT_TRUE(decision.counted);
    EXPECT_EQ(decision.counted_retries, 1);
    EXPECT_EQ(decide(of_kind(RetryKind::transient), {0, 3, {}}, fruitless, three_retries, 0).action, RetryAction::stop);
  }
  EXPECT_EQ(decide(of_kind(RetryKind::transient), {}, after(0, {}, {}), three_retries, 0).sentence,
            "attempt 1 starts from scratch, because no checkpoint exists, as counted retry 1 of 3 (no newer checkpoint "
            "than before)");
  EXPECT_EQ(decide(of_kind(RetryKind::transient), {4, 3, {}}, after(7, 40, 40), three_retries, 0).sentence,
            "no retry: 3 of 3 counted retries are used (JOB_RETRY_COUNT). This retry would count, because the attempt "
            "left no newer checkpoint");
}

TEST(DecisionTest, what_nobody_explains_is_repeated_as_often_as_the_user_says) {
  const Decision first = decide(of_kind(RetryKind::unknown), {5, 2, {}}, with_progress, three_retries, 0);
  EXPECT_EQ(first.action, RetryAction::requeue);
  EXPECT_TRUE(first.counted);
  EXPECT_EQ(first.transient_retries, 5);
  EXPECT_EQ(first.counted_retries, 3);
  EXPECT_EQ(first.sentence, "attempt 1 resumes from the checkpoint of step 40, as counted retry 3 of 3");
  const Decision last = decide(of_kind(RetryKind::unknown), {5, 3, {}}, with_progress, three_retries, 0);
  EXPECT_EQ(last.action, RetryAction::stop);
  EXPECT_EQ(last.sentence, "no retry: 3 of 3 counted retries are used (JOB_RETRY_COUNT)");
  EXPECT_EQ(decide(of_kind(RetryKind::unknown), {}, with_progress, {}, 0).action, RetryAction::stop)
      << "by default nothing is repeated that nobody explains, as in OpenPAI";
}

TEST(DecisionTest, a_conflict_waits_for_a_while_of_random_length) {
  const Decision soon = decide(of_kind(RetryKind::transient_conflict), {}, with_progress, three_retries, 0);
  EXPECT_EQ(soon.action, RetryAction::requeue);
  EXPECT_FALSE(soon.counted);
  EXPECT_EQ(soon.delay_seconds, 60);
  EXPECT_EQ(soon.sentence, "attempt 1 resumes from the checkpoint of step 40, after a delay of 1:00");
  EXPECT_EQ(decide(of_kind(RetryKind::transient_conflict), {}, with_progress, three_retries, 0.9999).delay_seconds,
            900);
}

TEST(DecisionTest, no_job_has_more_attempts_than_the_limit) {
  const Decision decision = decide(of_kind(RetryKind::transient), {4, 0, {}}, after(4, 30, 40), {3, 5}, 0);
  EXPECT_EQ(decision.action, RetryAction::stop);
  EXPECT_EQ(decision.sentence, "no retry: attempt 4 was the last of 5 (LOCKSTEP_ATTEMPT_LIMIT)");
  EXPECT_EQ(decide(of_kind(RetryKind::transient), {3, 0, {}}, after(3, 30, 40), {3, 5}, 0).action,
            RetryAction::requeue);
}

TEST(DecisionTest, a_bad_node_is_avoided_with_those_that_the_user_excludes) {
  AttemptConditions prospects = with_progress;
  prospects.nodes_of_partition = {"n1", "n2", "n3", "n4", "n5"};
  prospects.nodes_avoided = {"n5", "n4"};  // n4 by an earlier attempt
  const Decision decision = decide(on_bad_node("n2"), {1, 0, {"n4"}}, prospects, three_retries, 0);
  EXPECT_EQ(decision.action, RetryAction::requeue);
  EXPECT_EQ(decision.excluded, (Names{"n4", "n2"}));
  EXPECT_EQ(decision.avoided, (Names{"n5", "n4", "n2"}));
  EXPECT_EQ(decision.sentence, "attempt 1 resumes from the checkpoint of step 40, without n2");
}

TEST(DecisionTest, a_job_is_held_only_where_excluding_leaves_too_few_nodes) {
  AttemptConditions prospects = with_progress;
  prospects.nodes_of_partition = {"n1", "n2"};
  Decision decision = decide(on_bad_node("n2"), {}, prospects, three_retries, 0);
  EXPECT_EQ(decision.action, RetryAction::hold);
  EXPECT_EQ(decision.excluded, Names{});
  EXPECT_EQ(decision.avoided, Names{});
  EXPECT_EQ(decision.sentence,
            "held: the job cannot run without n2 (its partition has 1 other nodes, and the job needs 2). Release the "
            "job after the repair (scontrol release), or cancel it");
  prospects.nodes_of_partition = {"n1", "n2", "n3"};
  EXPECT_EQ(decide(on_bad_node("n2"), {}, prospects, three_retries, 0).action, RetryAction::requeue);
  prospects.nodes_of_partition.clear();
  EXPECT_EQ(decide(on_bad_node("n2"), {}, prospects, three_retries, 0).action, RetryAction::requeue) << "not known";
  prospects.nodes_required = {"n2"};
  decision = decide(on_bad_node("n2"), {}, prospects, three_retries, 0);
  EXPECT_EQ(decision.action, RetryAction::hold);
  EXPECT_NE(decision.sentence.find("(--nodelist requests n2)"), std::string::npos);
}

Refusal refused(std::int64_t attempt, const Decision& before) {
  return why_not_begin(attempt, StopRequest::none, before, three_retries).value_or(Refusal{});
}

TEST(DecisionTest, an_attempt_begins_unless_somebody_or_a_limit_has_ended_the_job) {
  Decision before;
  before.action = RetryAction::requeue;
  EXPECT_FALSE(why_not_begin(1, StopRequest::none, before, three_retries));
  const std::optional<Refusal> stopped = why_not_begin(200, StopRequest::for_good, {}, three_retries);
  ASSERT_TRUE(stopped.has_value()) << "a stop for good comes before any limit";
  EXPECT_EQ(stopped->cause, Cause::stopped_for_good);
  EXPECT_EQ(stopped->code, 75);
  EXPECT_EQ(stopped->why,
            "stop_job ended this job permanently. If you submit it again, it resumes from its checkpoint");
  EXPECT_EQ(refused(100, before).why, "the job has used all of its 100 attempts (LOCKSTEP_ATTEMPT_LIMIT)");
  before.action = RetryAction::stop;
  before.sentence = "no retry: enough";
  EXPECT_EQ(refused(1, before).cause, Cause::too_many_attempts);
  EXPECT_EQ(refused(1, before).why, "the previous attempt allows no retry: enough");
}

}  // namespace
}  // namespace lockstep
