#include "slurm/retry/attempt_ledger.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::attempt_ledger_test {

class AttemptLedgerTest : public testing::Test {
 protected:
  AttemptLedgerTest() {
    context_.job = 17;
    context_.nodes = {"n1", "n2"};
    context_.attempts_file = folder_.path() / "train-17.attempts.jsonl";
    context_.log = folder_.path() / "train-17.out";
    context_.checkpoints = folder_.path() / "checkpoints";
    context_.now = 1000;
    std::filesystem::create_directories(context_.checkpoints);
    std::ofstream(context_.log) << "";
  }
  void print(const std::string& text) const { std::ofstream(context_.log, std::ios::app) << text; }
  void write_checkpoint(int step) const {
    std::ofstream(context_.checkpoints / fmt::format("step-{:012}.h5", step)) << "";
  }
  AttemptStart begin(StopRequest stop_request = StopRequest::none) const {
    return begin_attempt(context_, policy_, stop_request);
  }
  AttemptEnd end_with(int code) {
    AttemptFacts facts;
    facts.launcher_code = code;
    return end_attempt(context_, facts, {}, {}, policy_, 0);
  }
  Attempt last_of(std::int64_t attempt) const {
    return *AttemptsFile(context_.attempts_file, context_.job).find(attempt);
  }

  TemporaryFolder folder_;
  AttemptContext context_;
  RetryPolicy policy_{3, 5};
};

TEST_F(AttemptLedgerTest, an_attempt_is_written_down_when_it_begins_and_when_it_has_ended) {
  print("before");
  const AttemptStart beginning = begin();
  EXPECT_FALSE(beginning.refusal);
  EXPECT_EQ(beginning.resume, Resume::as_given);
  expect_message(beginning.sentence, {"attempt 0 of job 17", "n1, n2"});
  EXPECT_EQ(last_of(0).cause, Cause::running);
  EXPECT_EQ(last_of(0).log_from, 6);
  write_checkpoint(40);
  context_.now = 1100;
  const AttemptEnd end = end_with(1);
  EXPECT_EQ(end.decision.action, RetryAction::requeue);
  const Attempt line = last_of(0);
  EXPECT_EQ(line.cause, Cause::failed);
  EXPECT_EQ(line.started, 1000);
  EXPECT_EQ(line.ended, 1100);
  EXPECT_EQ(line.checkpoint_step, 40);
  EXPECT_EQ(line.counted_retries, 1);
  expect_message(line.sentence, {"code 1", "attempt 1 resumes", "step 40", "counted retry 1 of 3"});
}

TEST_F(AttemptLedgerTest, only_what_this_attempt_printed_counts) {
  print("slurmstepd: error: Detected 1 oom_kill event\n");
  begin();
  EXPECT_EQ(end_with(1).finding.cause, Cause::failed);
  print("slurmstepd: error: Detected 1 oom_kill event\n");
  EXPECT_EQ(end_with(1).finding.cause, Cause::out_of_memory);
}

TEST_F(AttemptLedgerTest, a_disk_that_was_full_on_other_nodes_is_not_tried_again) {
  AttemptFacts facts;
  facts.exit_report = ExitReport{1, 0, "n2", "a role failed.", 0, {}, "cp: x: No space left on device"};
  begin();
  AttemptEnd end = end_attempt(context_, facts, {}, {}, policy_, 0);
  EXPECT_EQ(end.decision.action, RetryAction::requeue);
  EXPECT_EQ(end.decision.excluded, std::vector<std::string>{"n2"});
  context_.attempt = 1;
  begin();
  end = end_attempt(context_, facts, {}, {}, policy_, 0);
  EXPECT_EQ(end.finding.cause, Cause::disk_full);
  EXPECT_EQ(end.decision.action, RetryAction::stop);
}

TEST_F(AttemptLedgerTest, the_record_says_that_the_job_keeps_its_nodes) {
  policy_.hold_seconds = 1800;
  begin();
  end_with(1);
  expect_message(last_of(0).sentence, {"30:00", "LOCKSTEP_HOLD_ON_FAILURE"});
}

TEST_F(AttemptLedgerTest, an_attempt_whose_checkpoints_are_unknown_is_not_counted) {
  context_.checkpoints.clear();
  policy_.retry_count = 0;
  begin();
  context_.attempt = 1;  // the first node of attempt 0 failed
  EXPECT_FALSE(begin().refusal);
  EXPECT_EQ(last_of(0).cause, Cause::lost);
  const Decision decision = end_with(75).decision;
  EXPECT_EQ(decision.action, RetryAction::requeue);
  EXPECT_EQ(decision.transient_retries, 2);
}

TEST_F(AttemptLedgerTest, an_attempt_that_left_no_newer_checkpoint_than_it_found_is_counted) {
  write_checkpoint(40);
  begin();
  EXPECT_TRUE(end_with(75).decision.counted);
  context_.attempt = 1;
  expect_message(begin().sentence, {"attempt 1 of job 17", "n1, n2", "step 40"});
  write_checkpoint(41);
  EXPECT_FALSE(end_with(75).decision.counted);
}

TEST_F(AttemptLedgerTest, an_attempt_that_ended_without_a_word_is_ended_by_the_next) {
  begin();
  write_checkpoint(40);
  context_.attempt = 1;
  EXPECT_FALSE(begin().refusal);
  EXPECT_EQ(last_of(0).cause, Cause::lost);
  EXPECT_EQ(last_of(0).code, std::nullopt);
  EXPECT_EQ(last_of(0).transient_retries, 1);
  print("slurmstepd-n1: error: *** JOB 17 ON n1 CANCELLED AT now DUE TO PREEMPTION ***\n");
  context_.attempt = 2;
  begin();
  EXPECT_EQ(last_of(1).cause, Cause::preempted);
}

TEST_F(AttemptLedgerTest, a_job_that_dies_again_and_again_without_a_word_begins_no_more) {
  policy_.retry_count = 1;
  begin();
  context_.attempt = 1;
  EXPECT_FALSE(begin().refusal);
  context_.attempt = 2;
  const AttemptStart beginning = begin();
  ASSERT_TRUE(beginning.refusal);
  EXPECT_EQ(beginning.refusal->cause, Cause::too_many_attempts);
  expect_message(beginning.sentence, {"attempt 2 of job 17", "no retry", "1 of 1", "JOB_RETRY_COUNT"});
}

TEST_F(AttemptLedgerTest, what_was_stopped_for_good_begins_no_more_although_slurm_starts_it) {
  begin();
  write_checkpoint(40);
  context_.attempt = 1;
  const AttemptStart beginning = begin(StopRequest::for_good);
  ASSERT_TRUE(beginning.refusal);
  EXPECT_EQ(beginning.refusal->code, 75);
  expect_message(beginning.sentence, {"attempt 1 of job 17", "step 40", "stop_job"});
  for (const std::int64_t attempt : {0, 1}) {
    EXPECT_EQ(last_of(attempt).cause, Cause::stopped_for_good);
    EXPECT_EQ(last_of(attempt).kind, RetryKind::permanent);
    EXPECT_EQ(last_of(attempt).action, RetryAction::stop);
    EXPECT_TRUE(last_of(attempt).ended);
  }
  EXPECT_EQ(last_of(0).code, std::nullopt);
  EXPECT_EQ(last_of(1).code, 75);
}

// Slurm 24.11 started a job once more after a preemption, although it had finished. Its commands ran again.
TEST_F(AttemptLedgerTest, what_has_finished_begins_no_more_although_slurm_starts_it) {
  begin();
  end_with(0);
  for (const std::int64_t attempt : {2, 3}) {
    context_.attempt = attempt;
    const AttemptStart beginning = begin();
    ASSERT_TRUE(beginning.refusal);
    EXPECT_EQ(beginning.refusal->code, 0);
    EXPECT_EQ(last_of(attempt).cause, Cause::done);
    EXPECT_EQ(last_of(attempt).kind, RetryKind::none);
    EXPECT_EQ(last_of(attempt).code, 0);
  }
  expect_message(last_of(2).sentence, {"attempt 2 of job 17", "attempt 0 has finished"});
}

TEST_F(AttemptLedgerTest, what_is_repeated_after_success_begins_again) {
  policy_.retry_count = retry_every_end;
  begin();
  end_with(0);
  context_.attempt = 1;
  EXPECT_FALSE(begin().refusal);
}

TEST_F(AttemptLedgerTest, slurm_cannot_start_more_attempts_than_the_limit) {
  context_.attempt = 5;
  const AttemptStart beginning = begin();
  ASSERT_TRUE(beginning.refusal);
  EXPECT_EQ(beginning.refusal->cause, Cause::too_many_attempts);
  expect_message(beginning.sentence, {"attempt 5 of job 17", "5 attempts", "LOCKSTEP_ATTEMPT_LIMIT"});
  EXPECT_EQ(last_of(5).cause, Cause::too_many_attempts);
}

TEST_F(AttemptLedgerTest, a_retry_takes_up_a_checkpoint_of_this_job_alone) {
  write_checkpoint(40);  // by an earlier job, an hour ago
  const auto hour_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(context_.checkpoints / "step-000000000040.h5", hour_ago);
  context_.now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_EQ(begin().resume, Resume::as_given);
  context_.attempt = 1;
  EXPECT_EQ(begin().resume, Resume::as_given);
  write_checkpoint(50);
  context_.attempt = 2;
  EXPECT_EQ(begin().resume, Resume::newest);
}

TEST_F(AttemptLedgerTest, no_attempt_fails_for_its_record) {
  context_.attempts_file = folder_.path() / "nowhere" / "attempts.jsonl";
  EXPECT_FALSE(begin().refusal);
  EXPECT_EQ(end_with(79).finding.cause, Cause::diverged);
}

TEST_F(AttemptLedgerTest, attempts_without_a_record_count) {
  policy_.retry_count = 2;
  context_.attempts_file = folder_.path() / "nowhere" / "attempts.jsonl";
  EXPECT_EQ(end_with(1).decision.action, RetryAction::requeue);
  context_.attempt = 1;
  EXPECT_EQ(end_with(1).decision.counted_retries, 2);
  context_.attempt = 2;
  EXPECT_EQ(end_with(1).decision.action, RetryAction::stop);
}

}  // namespace lockstep::attempt_ledger_test
