#include "train/monitoring/job_training.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::job_training_test {

using testing::HasSubstr;
using testing::StartsWith;

constexpr std::int64_t morning = 1'795'300'000;  // seconds since 1970

Attempt attempt_of(std::int64_t number, Cause cause, std::int64_t started, std::optional<std::int64_t> ended) {
  Attempt attempt;
  attempt.job = 17;
  attempt.attempt = number;
  attempt.cause = cause;
  attempt.started = started;
  attempt.ended = ended;
  return attempt;
}

JobRecord job_in(const std::string& state, std::vector<Attempt> attempts) {
  JobRecord record =
      find_job({17, {}}, parse_scontrol("JobId=17 JobName=x\n   JobState=" + state + " Reason=None\n"), "");
  record.attempts = std::move(attempts);
  record.output = "/run";
  return record;
}
JobRecord running_job() { return job_in("RUNNING", {attempt_of(0, Cause::running, morning, {})}); }
// Attempt 0 was killed, attempt 1 runs.
JobRecord repeated_job() {
  return job_in("RUNNING", {attempt_of(0, Cause::killed, morning, morning + 100),
                            attempt_of(1, Cause::running, morning + 130, {})});
}

FolderHolder held_by(const std::string& job, std::int64_t restarts) {
  LockHolder holder;
  holder.job = job;
  holder.restarts = restarts;
  holder.host = "n2";
  holder.process = 5;
  return {FolderHolder::Kind::elsewhere, holder, ""};
}

TrainingStatus status_of(RunState state, std::int64_t began, const FolderHolder& holder) {
  TrainingStatus status;
  status.summary.state = state;
  status.holder = holder;
  status.summary.model = "lenet";
  status.summary.data = "digits";
  status.step = 200;
  status.steps = 400;
  status.samples_per_second = 64;
  status.seconds_left = 100;
  status.checkpoint_step = 150;
  status.summary.started = began;
  status.written = began + 10;
  return status;
}

TEST(JobTrainingTest, the_line_of_a_training_that_stopped_early_says_so) {
  TrainingStatus status = status_of(RunState::done, morning, {});
  status.summary.step = status.step;
  status.summary.steps = status.steps;
  status.summary.early_stop = {"test-loss", 3};
  EXPECT_THAT(training_line(status), StartsWith("done by early stopping after step 200 of 400  step 200/400  "));
}

// "running, or killed with its node" stood beside Slurm's RUNNING.
TEST(JobTrainingTest, what_slurm_calls_running_runs) {
  EXPECT_EQ(job_training_text(running_job(), status_of(RunState::running, morning + 3, held_by("17", 0))),
            "state       running: job 17 on n2 (process 5)\n"
            "training    lenet on digits\n"
            "step        200 of 400 (50.0 %)\n"
            "speed       64 samples/s\n"
            "time left   1:40\n"
            "checkpoint  step 150");
}

TEST(JobTrainingTest, an_attempt_that_has_not_reported_starts) {
  const std::string starting =
      "state       starting: attempt 1 has not reported yet\n"
      "training    lenet on digits\n"
      "checkpoint  step 150";
  const TrainingStatus of_earlier = status_of(RunState::running, morning + 3, {});
  EXPECT_EQ(job_training_text(repeated_job(), of_earlier), starting) << "nobody has the folder yet";
  TrainingStatus stale = of_earlier;
  stale.holder = held_by("17", 0);
  EXPECT_EQ(job_training_text(repeated_job(), stale), starting) << "the lock is still attempt 0's";
  TrainingStatus held = of_earlier;
  held.holder = held_by("17", 1);
  EXPECT_EQ(job_training_text(repeated_job(), held), starting) << "attempt 1 has the lock, and not written a summary";
  TrainingStatus gone_on = status_of(RunState::running, morning + 140, held_by("17", 1));
  gone_on.summary.interruptions = {{RunState::running, 200, morning + 140, 1, ""}};
  EXPECT_EQ(job_training_text(repeated_job(), gone_on), starting) << "what is reported is attempt 0's";
  gone_on.summary.interruptions[0].step = 150;
  EXPECT_THAT(job_training_text(repeated_job(), gone_on), HasSubstr("step        200 of 400"));
  EXPECT_EQ(job_training_text(running_job(), {}), "state       starting\ncheckpoint  none");
}

TEST(JobTrainingTest, another_jobs_training_is_not_this_ones) {
  const JobRecord refused = job_in("FAILED", {attempt_of(0, Cause::usage, morning, morning + 4)});
  const TrainingStatus others = status_of(RunState::running, morning - 100, held_by("16", 0));
  EXPECT_EQ(job_training_text(refused, others),
            "state       not started: another training uses its folder (job 16 on n2 (process 5))\ncheckpoint  none");
  TrainingStatus later = status_of(RunState::done, morning + 1, {});
  EXPECT_EQ(owner_of(refused, later), TrainingOwner::another) << "a refused start trains nothing";
  EXPECT_EQ(job_training_text(running_job(), others),
            "state       starting: another training uses its folder (job 16 on n2 (process 5))\ncheckpoint  none");
  EXPECT_EQ(owner_of(running_job(), status_of(RunState::running, morning + 3, held_by("", 0))), TrainingOwner::another);
  const JobRecord done = job_in("COMPLETED", {attempt_of(0, Cause::done, morning, morning + 100)});
  EXPECT_EQ(owner_of(done, status_of(RunState::done, morning + 3, {})), TrainingOwner::this_attempt);
  EXPECT_EQ(owner_of(done, status_of(RunState::done, morning + 200, {})), TrainingOwner::another);
}

TEST(JobTrainingTest, a_finished_run_that_goes_on_for_longer_keeps_its_start) {
  TrainingStatus longer = status_of(RunState::done, morning - 5000, {});
  longer.written = morning + 50;
  const JobRecord done = job_in("COMPLETED", {attempt_of(0, Cause::done, morning, morning + 100)});
  EXPECT_EQ(owner_of(done, longer), TrainingOwner::this_attempt);
}

TEST(JobTrainingTest, ranks_of_all_components_are_the_jobs) {
  JobRecord record = running_job();
  record.parts = {17, 18};
  EXPECT_EQ(owner_of(record, status_of(RunState::running, morning + 3, held_by("18", 0))), TrainingOwner::this_attempt);
}

TEST(JobTrainingTest, states_of_a_job_and_of_its_training) {
  struct Row {
    const char* slurm;
    Cause attempt;
    RunState training;
    FolderHolder holder;
    const char* words;
  };
  const std::vector<Row> rows = {
      {"RUNNING", Cause::running, RunState::running, held_by("17", 0), "running: job 17 on n2 (process 5)"},
      {"RUNNING", Cause::running, RunState::running, {}, "killed; its attempt is ending"},
      {"RUNNING", Cause::running, RunState::done, {}, "done"},
      {"RUNNING", Cause::killed, RunState::running, {}, "killed; the same command resumes it"},
      {"PENDING", Cause::killed, RunState::running, {}, "killed; the next attempt resumes it"},
      {"PENDING", Cause::stopped_early, RunState::stopped, {}, "stopped; the next attempt resumes it"},
      {"CANCELLED", Cause::running, RunState::running, held_by("17", 0), "killed; the same command resumes it"},
      {"CANCELLED", Cause::cancelled, RunState::stopped, {}, "stopped; the same command resumes it"},
      {"FAILED", Cause::diverged, RunState::diverged, {}, "diverged"},
      {"FAILED", Cause::failed, RunState::failed, {}, "failed (failure.json states why); the same command resumes it"},
      {"COMPLETED", Cause::done, RunState::done, {}, "done"},
  };
  for (const Row& row : rows) {
    const bool is_open = row.attempt == Cause::running;
    const auto ended = is_open ? std::nullopt : std::optional(morning + 100);
    const JobRecord record = job_in(row.slurm, {attempt_of(0, row.attempt, morning, ended)});
    const std::string text = job_training_text(record, status_of(row.training, morning + 3, row.holder));
    EXPECT_THAT(text, StartsWith(fmt::format("state       {}\n", row.words))) << row.slurm;
    const bool runs = std::string(row.words).starts_with("running");
    EXPECT_EQ(text.find("time left") != std::string::npos, runs || row.training != RunState::running) << text;
  }
}

TEST(JobTrainingTest, a_line_says_what_changes) {
  const TrainingStatus status = status_of(RunState::running, morning + 3, held_by("17", 0));
  EXPECT_EQ(job_line(running_job(), status),
            "job 17: RUNNING, attempt 0  step 200/400  64 samples/s  1:40 left  checkpoint 150");
  EXPECT_EQ(job_line(repeated_job(), status_of(RunState::running, morning + 3, {})),
            "job 17: RUNNING, attempt 1  starting: attempt 1 has not reported yet");
  EXPECT_EQ(training_line(status),
            "running, or killed with its node  step 200/400  64 samples/s  1:40 left  "
            "checkpoint 150");
  JobRecord without = running_job();
  without.output.clear();
  EXPECT_EQ(job_line(without, {}), "job 17: RUNNING, attempt 0");
}

}  // namespace lockstep::job_training_test
