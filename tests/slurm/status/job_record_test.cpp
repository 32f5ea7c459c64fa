#include "slurm/status/job_record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/io/file.hpp"
#include "support/mutation.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::job_record_test {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string scontrol = R"(JobId=17 JobName=two words JobState=FAKE
   UserId=root(0) GroupId=root(0)
   JobState=RUNNING Reason=None Dependency=(null)
   Requeue=1 Restarts=1 BatchFlag=1 Reboot=0 ExitCode=0:0
   Command=/x/train_cifar.sbatch --output JobState=FAKE
   WorkDir=/a folder/with spaces
   StdOut=/a folder/slurm-17.out
)";
const std::string array = R"(JobId=6 ArrayJobId=6 ArrayTaskId=2-4%2 ArrayTaskThrottle=2 JobName=array
   JobState=PENDING Reason=JobArrayTaskLimit Dependency=(null)

JobId=10 ArrayJobId=6 ArrayTaskId=1 ArrayTaskThrottle=2 JobName=array
   JobState=RUNNING Reason=None Dependency=(null)
   Requeue=1 Restarts=2 BatchFlag=1
)";
const std::string heterogeneous = R"(JobId=20 HetJobId=20 HetJobOffset=0 JobName=het
   JobState=RUNNING Reason=None Dependency=(null)
JobId=21 HetJobId=20 HetJobOffset=1 JobName=het
   JobState=RUNNING Reason=None Dependency=(null)
)";
constexpr const char* nobody = "slurm_load_jobs error: Invalid job id specified\n";

Attempt attempt_of(std::int64_t number, Cause cause) {
  Attempt attempt;
  attempt.job = 17;
  attempt.attempt = number;
  attempt.cause = cause;
  attempt.sentence = "rank 1 on n2 was killed\x1b[2J";
  attempt.counted_retries = number;
  attempt.nodes = {"n1", "n2"};
  return attempt;
}

class JobRecordTest : public testing::Test {
 protected:
  JobRecordTest() {
    AttemptsFile file(folder.path() / "train_cifar-17.attempts.jsonl", 17);
    file.add(attempt_of(0, Cause::killed));
    file.add(attempt_of(1, Cause::running));
    fs::create_directory(folder.path() / "run");
    fs::create_symlink(folder.path() / "run", folder.path() / "train_cifar-17.output");
    write_file_atomically(folder.path() / "run/summary.json",
                          std::string_view(R"({"state": "stopped", "step": 3, "steps": 4})"));
  }
  // With a scontrol that says `message`.
  ProgramResult status(const std::vector<std::string>& arguments, const std::string& message = nobody) const {
    const fs::path tools = folder.path() / "tools";
    fs::create_directories(tools);
    write_file_atomically(tools / "words", message);
    write_file_atomically(tools / "scontrol", "#!/bin/sh\ncat '" + (tools / "words").string() + "'\n");
    fs::permissions(tools / "scontrol", fs::perms::owner_all);
    std::vector<std::string> all = {"env", "-C", folder.path().string(), "PATH=" + tools.string() + ":/usr/bin:/bin",
                                    built_program("job_status")};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run_program(all);
  }
  JobRecord record_of(const std::string& message) const {
    return find_job({17, {}}, parse_scontrol(message), folder.path());
  }

  TemporaryFolder folder;
};

std::string in_state(const std::string& state) { return "JobId=17 JobName=x\n   JobState=" + state + " Reason=None\n"; }

TEST(ScontrolJobTest, a_number_is_that_of_a_job_or_of_a_task) {
  EXPECT_EQ(parse_job_number("17"), (JobNumber{17, {}}));
  EXPECT_EQ(parse_job_number("6_1"), (JobNumber{6, 1}));
  EXPECT_EQ(parse_job_number("20+1"), (JobNumber{20, {}}));
  for (const char* text : {"", "0", "-1", "6_", "_1", "6_1_2", "6;x", "6_$(x)", "4294967296"}) {
    EXPECT_EQ(parse_job_number(text), std::nullopt) << text;
  }
  EXPECT_EQ(format_job_number({6, 1}), "6_1");
}

TEST(ScontrolJobTest, scontrol_is_read_by_its_own_fields) {
  const ScontrolAnswer answer = parse_scontrol(scontrol);
  ASSERT_EQ(answer.jobs.size(), 1);
  const ScontrolJob& job = answer.jobs[0];
  EXPECT_EQ(job.id, 17);
  EXPECT_EQ(job.state, "RUNNING");
  EXPECT_EQ(job.name, "two words JobState=FAKE");
  EXPECT_EQ(job.restarts, 1);
  EXPECT_EQ(job.log, "/a folder/slurm-17.out");
  EXPECT_EQ(job.folder, "/a folder/with spaces");
  EXPECT_EQ(parse_scontrol(nobody).kind, ScontrolAnswer::Kind::unknown);
  EXPECT_EQ(parse_scontrol("Unable to contact slurm controller").kind, ScontrolAnswer::Kind::no_answer);
  EXPECT_EQ(parse_scontrol("sh: scontrol: not found").kind, ScontrolAnswer::Kind::no_answer);
}

// Where Slurm took a job's nodes away, a role that knows nothing of checkpoints had failed.
TEST(ScontrolJobTest, a_job_whose_nodes_are_wanted_back_is_being_ended) {
  const auto is_ended = [](const std::string& lines) { return is_being_ended(parse_scontrol(lines).jobs.at(0)); };
  const std::string line = "   PreemptEligibleTime=2026-11-22T13:02:28 PreemptTime=";
  EXPECT_FALSE(is_ended(in_state("RUNNING")));
  EXPECT_FALSE(is_ended(in_state("RUNNING") + line + "None\n"));
  EXPECT_TRUE(is_ended(in_state("RUNNING") + line + "2026-11-22T13:02:32\n"));
  EXPECT_TRUE(is_ended(in_state("COMPLETING")));
  EXPECT_TRUE(is_ended(in_state("PENDING")));
}

TEST(ScontrolJobTest, an_array_names_its_tasks_and_a_task_is_a_job) {
  const ScontrolAnswer answer = parse_scontrol(array);
  EXPECT_TRUE(is_array({6, {}}, answer));
  EXPECT_FALSE(is_array({10, {}}, parse_scontrol(array.substr(array.find("JobId=10")))));
  EXPECT_THAT(
      array_text({6, {}}, answer),
      AllOf(StartsWith("job         6 array: "),
            HasSubstr("\ntask        6_1: RUNNING, attempt 2\ntask        6_2-4%2: PENDING\n"), HasSubstr(" 6_TASK")));
  const JobRecord task = find_job({6, 1}, parse_scontrol(array.substr(array.find("JobId=10"))), "");
  EXPECT_EQ(task.job, 10);
  EXPECT_THAT(job_text(task), AllOf(StartsWith("job         6_1 ("), HasSubstr("10) array: RUNNING\nattempt     ")));
}

TEST(ScontrolJobTest, a_heterogeneous_job_goes_by_its_first_number) {
  const JobRecord record = find_job({20, {}}, parse_scontrol(heterogeneous), "");
  EXPECT_EQ(record.job, 20);
  EXPECT_THAT(record.parts, testing::UnorderedElementsAre(20, 20, 21));
  EXPECT_FALSE(is_array({20, {}}, parse_scontrol(heterogeneous)));
}

TEST_F(JobRecordTest, a_job_is_found_beside_its_log) {
  ScontrolAnswer answer = parse_scontrol(scontrol);
  answer.jobs[0].log = folder.path() / "slurm-17.out";
  const JobRecord record = find_job({17, {}}, answer, "/nowhere");
  EXPECT_EQ(record.output, folder.path() / "run");
  EXPECT_EQ(job_text(record),
            "job         17 two words JobState=FAKE: RUNNING\n"
            "attempt     1, retries: 1 counted, 0 not counted; on n1 n2\n"
            "ended       attempt 0, killed: rank 1 on n2 was killed\\x1b[2J");
  EXPECT_THAT(job_text(find_job({7, {}}, parse_scontrol(nobody), folder.path())), Not(HasSubstr("n1 n2")))
      << "job 17's file ends with the same digit";
}

TEST_F(JobRecordTest, its_phase_is_what_slurm_says_and_without_it_what_the_files_do) {
  for (const char* state : {"RUNNING", "COMPLETING", "SUSPENDED", "SIGNALING", "STAGE_OUT"}) {
    EXPECT_EQ(phase_of(record_of(in_state(state))), JobPhase::runs) << state;
  }
  for (const char* state : {"PENDING", "CONFIGURING", "REQUEUE_HOLD"}) {
    EXPECT_EQ(phase_of(record_of(in_state(state))), JobPhase::waits) << state;
  }
  for (const char* state : {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"}) {
    EXPECT_EQ(phase_of(record_of(in_state(state))), JobPhase::over) << state;
  }
  EXPECT_EQ(phase_of(record_of(nobody)), JobPhase::over);
  JobRecord record = record_of("");
  EXPECT_EQ(phase_of(record), JobPhase::unclear);
  record.attempts.back().action = RetryAction::requeue;
  EXPECT_EQ(phase_of(record), JobPhase::unclear);
  record.attempts.back().action = RetryAction::stop;
  EXPECT_EQ(phase_of(record), JobPhase::over);
}

// Its last line stays `running`: attempt 0's end was shown as the job's.
TEST_F(JobRecordTest, an_attempt_that_could_not_write_its_end_is_told_from_what_slurm_says) {
  const auto text = [&](const std::string& message) { return job_text(record_of(message)); };
  EXPECT_THAT(text(in_state("CANCELLED")), HasSubstr("\nended       attempt 1, cancelled: "));
  EXPECT_THAT(text(in_state("TIMEOUT")), HasSubstr("\nended       attempt 1, TIMEOUT: "));
  EXPECT_THAT(text(nobody), HasSubstr("\nended       attempt 1, lost: "));
  EXPECT_THAT(text(in_state("PENDING")), HasSubstr("\nended       attempt 1, lost: "));
  EXPECT_THAT(text(in_state("RUNNING")), HasSubstr("\nended       attempt 0, killed: "));
  EXPECT_THAT(text(""), HasSubstr("\nended       attempt 0, killed: "));
}

TEST_F(JobRecordTest, an_attempt_that_has_written_nothing_yet_begins) {
  const std::string second = in_state("RUNNING") + "   Requeue=1 Restarts=2 BatchFlag=1\n";
  EXPECT_EQ(attempt_of(record_of(second)), 2);
  EXPECT_TRUE(attempt_runs(record_of(second)));
  EXPECT_THAT(job_text(record_of(second)),
              AllOf(HasSubstr("\nattempt     2 "), HasSubstr("\nended       attempt 1, lost: ")));
  EXPECT_THAT(job_text(record_of("JobId=17 JobName=x\n   JobState=PENDING Reason=BeginTime\n")),
              StartsWith("job         17 x: PENDING (BeginTime)\n"));
}

TEST_F(JobRecordTest, the_program_tells_of_jobs_and_of_folders) {
  const ProgramResult job = status({"17"});
  EXPECT_EQ(job.exit_code, 0) << job.errors;
  EXPECT_THAT(job.output, AllOf(StartsWith("job         17: "), HasSubstr("\nattempt     1, "),
                                HasSubstr("\nstate       stopped"), HasSubstr("\nstep        3 of 4 (75.0 %)\n")));
  EXPECT_THAT(status({"17"}, "").output, StartsWith("job         17: Slurm "));
  EXPECT_THAT(status({"17"}, in_state("RUNNING")).output, HasSubstr("\nstate       stopped"));
  const ProgramResult run = status({"run", "--follow"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.output, StartsWith("state       stopped"));
  const ProgramResult tasks = status({"6", "--follow"}, array);
  EXPECT_EQ(tasks.exit_code, 0) << tasks.errors;
  EXPECT_THAT(tasks.output, HasSubstr("\ntask        6_1: RUNNING, attempt 2\n"));
  const ProgramResult unknown = status({"99"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.errors, AllOf(HasSubstr("job 99 "), HasSubstr("*-99.attempts.jsonl")));
  const ProgramResult task = status({"17_1"});
  EXPECT_EQ(task.exit_code, 2);
  EXPECT_THAT(task.errors, AllOf(HasSubstr("job 17_1 "), Not(HasSubstr("attempts.jsonl"))));
  const ProgramResult neither = status({"1;x"});
  EXPECT_EQ(neither.exit_code, 2);
  EXPECT_THAT(neither.errors, AllOf(HasSubstr("'1;x'"), HasSubstr("6_1")));
}

// Any folder was a training that had not started.
TEST_F(JobRecordTest, a_folder_without_a_training_is_refused_unless_it_is_empty) {
  fs::create_directories(folder.path() / "queued");
  EXPECT_THAT(status({"queued"}).output, StartsWith("state       not started"));
  write_file_atomically(folder.path() / "queued/lock", std::string_view(""));
  EXPECT_EQ(status({"queued"}).exit_code, 0) << "a start that was killed";
  const ProgramResult other = status({"tools", "--follow"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.errors, HasSubstr("'tools' (JOB|FOLDER) contains no training"));
  fs::create_directories(folder.path() / "search");
  write_file_atomically(
      folder.path() / "search/search.jsonl",
      std::string_view(
          R"({"search":1,"space":{"program":"./mine","hyperparameters":{"n":"1"},"searcher":{"name":"single","metric":"x","smaller_is_better":"true","max_length":{"batches":"4"}}},"orders":[{"trial":1,"rung":1,"length":4,"settings":["--n=1"]}]}
)"));
  const ProgramResult search = status({"search", "--follow"});
  EXPECT_EQ(search.exit_code, 0) << search.errors;
  EXPECT_THAT(search.output, AllOf(StartsWith("search over options of './mine'"), HasSubstr("state      stopped")));
}

TEST_F(JobRecordTest, damaged_files_are_told_of_as_far_as_they_go) {
  const fs::path file = folder.path() / "train_cifar-17.attempts.jsonl";
  const std::string whole = read_file(file, 1 << 16);
  for (std::uint64_t round = 0; round < mutation_rounds(100); ++round) {
    write_file_atomically(file, mutated(whole, round));
    const JobRecord record = record_of(mutated(scontrol, round));
    EXPECT_THAT(job_text(record), StartsWith("job         17"));
    array_text({6, {}}, parse_scontrol(array + mutated(array, round)));
  }
}

}  // namespace lockstep::job_record_test
