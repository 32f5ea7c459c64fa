#include "train/monitoring/job_training.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/io/file.hpp"
#include "files/folder/lock_holder.hpp"
#include "support/mutation.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
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
  return {FolderHolder::Kind::elsewhere, describe_lock_holder(holder), lock_holder_text(holder) + "\n0001\n"};
}

TrainingTraces traces_of(RunState state, std::int64_t began, const FolderHolder& holder) {
  TrainingTraces traces;
  traces.status.state = state;
  traces.status.holder = holder;
  traces.status.model = "lenet";
  traces.status.data = "digits";
  traces.status.step = 200;
  traces.status.steps = 400;
  traces.status.samples_per_second = 64;
  traces.status.seconds_left = 100;
  traces.status.checkpoint_step = 150;
  traces.began = began;
  traces.written = began + 10;
  return traces;
}

// "running, or killed with its node" stood beside Slurm's RUNNING.
TEST(JobTrainingTest, what_slurm_calls_running_runs) {
  EXPECT_EQ(job_training_text(running_job(), traces_of(RunState::running, morning + 3, held_by("17", 0))),
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
  const TrainingTraces of_earlier = traces_of(RunState::running, morning + 3, {});
  EXPECT_EQ(job_training_text(repeated_job(), of_earlier), starting) << "nobody has the folder yet";
  TrainingTraces stale = of_earlier;
  stale.status.holder = held_by("17", 0);
  EXPECT_EQ(job_training_text(repeated_job(), stale), starting) << "the lock is still attempt 0's";
  TrainingTraces held = of_earlier;
  held.status.holder = held_by("17", 1);
  EXPECT_EQ(job_training_text(repeated_job(), held), starting) << "attempt 1 has the lock, and not written a summary";
  TrainingTraces gone_on = traces_of(RunState::running, morning + 140, held_by("17", 1));
  gone_on.first_step = 200;
  EXPECT_EQ(job_training_text(repeated_job(), gone_on), starting) << "what is reported is attempt 0's";
  gone_on.first_step = 150;
  EXPECT_THAT(job_training_text(repeated_job(), gone_on), HasSubstr("step        200 of 400"));
  EXPECT_EQ(job_training_text(running_job(), {}), "state       starting\ncheckpoint  none");
}

TEST(JobTrainingTest, another_jobs_training_is_not_this_ones) {
  const JobRecord refused = job_in("FAILED", {attempt_of(0, Cause::usage, morning, morning + 4)});
  const TrainingTraces others = traces_of(RunState::running, morning - 100, held_by("16", 0));
  EXPECT_EQ(job_training_text(refused, others),
            "state       not started: another training uses its folder (job 16 on n2 (process 5))\ncheckpoint  none");
  TrainingTraces later = traces_of(RunState::done, morning + 1, {});
  EXPECT_EQ(owner_of(refused, later), TrainingOwner::another) << "a refused start trains nothing";
  EXPECT_EQ(job_training_text(running_job(), others),
            "state       starting: another training uses its folder (job 16 on n2 (process 5))\ncheckpoint  none");
  EXPECT_EQ(owner_of(running_job(), traces_of(RunState::running, morning + 3, held_by("", 0))), TrainingOwner::another);
  const JobRecord done = job_in("COMPLETED", {attempt_of(0, Cause::done, morning, morning + 100)});
  EXPECT_EQ(owner_of(done, traces_of(RunState::done, morning + 3, {})), TrainingOwner::this_attempt);
  EXPECT_EQ(owner_of(done, traces_of(RunState::done, morning + 200, {})), TrainingOwner::another);
}

TEST(JobTrainingTest, a_finished_run_that_goes_on_for_longer_keeps_its_start) {
  TrainingTraces longer = traces_of(RunState::done, morning - 5000, {});
  longer.written = morning + 50;
  const JobRecord done = job_in("COMPLETED", {attempt_of(0, Cause::done, morning, morning + 100)});
  EXPECT_EQ(owner_of(done, longer), TrainingOwner::this_attempt);
}

TEST(JobTrainingTest, ranks_of_all_components_are_the_jobs) {
  JobRecord record = running_job();
  record.parts = {17, 18};
  EXPECT_EQ(owner_of(record, traces_of(RunState::running, morning + 3, held_by("18", 0))), TrainingOwner::this_attempt);
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
      {"FAILED", Cause::failed, RunState::failed, {}, "failed: see failure.json"},
      {"COMPLETED", Cause::done, RunState::done, {}, "done"},
  };
  for (const Row& row : rows) {
    const bool is_open = row.attempt == Cause::running;
    const auto ended = is_open ? std::nullopt : std::optional(morning + 100);
    const JobRecord record = job_in(row.slurm, {attempt_of(0, row.attempt, morning, ended)});
    const std::string text = job_training_text(record, traces_of(row.training, morning + 3, row.holder));
    EXPECT_THAT(text, StartsWith(fmt::format("state       {}\n", row.words))) << row.slurm;
    const bool runs = std::string(row.words).starts_with("running");
    EXPECT_EQ(text.find("time left") != std::string::npos, runs || row.training != RunState::running) << text;
  }
}

TEST(JobTrainingTest, a_line_says_what_changes) {
  const TrainingTraces traces = traces_of(RunState::running, morning + 3, held_by("17", 0));
  EXPECT_EQ(job_line(running_job(), traces),
            "job 17: RUNNING, attempt 0  step 200/400  64 samples/s  1:40 left  checkpoint 150");
  EXPECT_EQ(job_line(repeated_job(), traces_of(RunState::running, morning + 3, {})),
            "job 17: RUNNING, attempt 1  starting: attempt 1 has not reported yet");
  EXPECT_EQ(training_line(traces.status),
            "running, or killed with its node  step 200/400  64 samples/s  1:40 left  "
            "checkpoint 150");
  JobRecord without = running_job();
  without.output.clear();
  EXPECT_EQ(job_line(without, {}), "job 17: RUNNING, attempt 0");
}

class TrainingTracesTest : public testing::Test {
 protected:
  void write(const fs::path& path, const std::string& text) const {
    fs::create_directories((folder.path() / path).parent_path());
    write_file_atomically(folder.path() / path, text);
  }
  TemporaryFolder folder;
};

TEST_F(TrainingTracesTest, a_summary_says_when_its_attempt_began) {
  write("run/summary.json", R"({"state": "running", "started": "2026-11-22T07:20:00Z"})");
  EXPECT_EQ(training_traces(folder.path() / "run", "").began, 1795332000);
  write("run/summary.json", R"({"state": "running", "started": "2026-11-22T07:20:00Z", "interruptions":
                             [{"state": "killed", "step": 75, "resumed": "2026-11-22T08:20:01Z"}]})");
  const TrainingTraces traces = training_traces(folder.path() / "run", "");
  EXPECT_EQ(traces.began, 1795335601);
  EXPECT_EQ(traces.first_step, 75);
  for (const char* time : {"\"2026-11-22\"", "7", "\"20x6-11-22T07:20:00Z\"", "null"}) {
    write("run/summary.json", fmt::format(R"({{"state": "running", "started": {}}})", time));
    EXPECT_EQ(training_traces(folder.path() / "run", "").began, std::nullopt) << time;
  }
}

// Called from another folder it said: checkpoint none.
TEST_F(TrainingTracesTest, paths_of_a_run_are_looked_up_where_it_ran) {
  write("place/runs/a/checkpoints/step-000000000007.h5", "x");
  write("place/runs/a/summary.json",
        R"({"state": "done", "run": {"output": "runs/a", "checkpoints": "runs/a/checkpoints"}})");
  const fs::path run = folder.path() / "place/runs/a";
  EXPECT_EQ(training_traces(run, "").status.checkpoint_step, 7);
  write("place/elsewhere/step-000000000009.h5", "x");
  write("place/runs/a/summary.json",
        R"({"state": "done", "run": {"output": "./runs/a/", "checkpoints": "elsewhere"}})");
  EXPECT_EQ(training_traces(run, "").status.checkpoint_step, 9);
  write("place/runs/a/summary.json",
        fmt::format(R"({{"state": "done", "run": {{"output": "{}", "checkpoints": "elsewhere"}}}})", run.string()));
  EXPECT_EQ(training_traces(run, "").status.checkpoint_step, std::nullopt);
  EXPECT_EQ(training_traces(run, folder.path() / "place").status.checkpoint_step, 9);
}

TEST_F(TrainingTracesTest, damaged_files_are_told_of_as_far_as_they_go) {
  const std::string whole = R"({"state": "running", "step": 3, "steps": 9, "started": "2026-11-22T07:20:00Z",
                             "interruptions": [{"state": "killed", "step": 1, "resumed": "2026-11-22T08:20:01Z"}]})";
  for (std::uint64_t round = 0; round < mutation_rounds(100); ++round) {
    write("run/summary.json", mutated(whole, round));
    const TrainingTraces traces = training_traces(folder.path() / "run", folder.path());
    EXPECT_THAT(job_training_text(repeated_job(), traces), StartsWith("state       "));
    EXPECT_THAT(job_line(repeated_job(), traces), Not(HasSubstr("\n")));
  }
}

}  // namespace
}  // namespace lockstep
