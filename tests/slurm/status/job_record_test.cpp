#include "slurm/status/job_record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/io/file.hpp"
#include "support/mutation.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

const std::string scontrol = R"(JobId=17 JobName=two words
   UserId=root(0) GroupId=root(0)
   JobState=RUNNING Reason=None Dependency=(null)
   Command=/x/train_cifar.sbatch --output JobState=FAKE
   WorkDir=/a folder/with spaces
   StdOut=/a folder/slurm-17.out
)";

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
  ProgramResult status(const std::vector<std::string>& words) const {
    std::vector<std::string> all = {"env", "-C", folder.path().string(), "PATH=/usr/bin:/bin",
                                    built_program("job_status")};
    all.insert(all.end(), words.begin(), words.end());
    return run_program(all);
  }

  TemporaryFolder folder;
};

TEST_F(JobRecordTest, scontrol_is_read_by_its_own_fields) {
  const ScontrolJob job = parse_scontrol_job(scontrol);
  EXPECT_EQ(job.state, "RUNNING");
  EXPECT_EQ(job.name, "two words");
  EXPECT_EQ(job.log, "/a folder/slurm-17.out");
  EXPECT_EQ(job.folder, "/a folder/with spaces");
  EXPECT_EQ(parse_scontrol_job("slurm_load_jobs error: Invalid job id specified\n").state, "");
}

TEST_F(JobRecordTest, a_job_is_found_beside_its_log) {
  ScontrolJob slurm = parse_scontrol_job(scontrol);
  slurm.log = folder.path() / "slurm-17.out";
  const JobRecord record = find_job(17, slurm, "/nowhere");
  EXPECT_EQ(record.output, folder.path() / "run");
  EXPECT_FALSE(has_ended(record));
  EXPECT_EQ(job_text(record),
            "job         17 two words: RUNNING\n"
            "attempt     1, retries: 1 counted, 0 not; on n1 n2\n"
            "ended       attempt 0, killed: rank 1 on n2 was killed\\x1b[2J");
  EXPECT_THAT(job_text(find_job(7, {}, folder.path())), HasSubstr("attempt     none is written down"))
      << "job 17's file ends with the same digit";
  slurm.state = "PENDING";
  slurm.reason = "BeginTime";
  EXPECT_THAT(job_text(find_job(17, slurm, "")), StartsWith("job         17 two words: PENDING (BeginTime)\n"));
}

TEST_F(JobRecordTest, it_has_ended_when_slurm_says_so_or_the_last_attempt_does) {
  JobRecord record = find_job(17, {}, folder.path());
  EXPECT_FALSE(has_ended(record));
  record.attempts.back().action = RetryAction::requeue;
  EXPECT_FALSE(has_ended(record));
  record.attempts.back().action = RetryAction::stop;
  EXPECT_TRUE(has_ended(record));
  record.slurm.state = "RUNNING";
  EXPECT_FALSE(has_ended(record));
  for (const char* state : {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"}) {
    record.slurm.state = state;
    EXPECT_TRUE(has_ended(record)) << state;
  }
}

TEST_F(JobRecordTest, the_program_tells_of_jobs_and_of_folders) {
  const ProgramResult job = status({"17"});
  EXPECT_EQ(job.exit_code, 0) << job.errors;
  EXPECT_THAT(job.output,
              AllOf(StartsWith("job         17: not known to Slurm (any more)\nattempt     1, "),
                    HasSubstr("\nstate       stopped; the same command goes on\nstep        3 of 4 (75.0 %)\n")));
  const ProgramResult run = status({"run", "--follow"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.output, StartsWith("state       stopped; the same command goes on\n"));
  const ProgramResult unknown = status({"99"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.errors, HasSubstr("nothing is known of job 99: Slurm does not name it (any more), and no file "
                                        "*-99.attempts.jsonl lies here. Go to the folder of its log?"));
  const ProgramResult neither = status({"1;x"});
  EXPECT_EQ(neither.exit_code, 2);
  EXPECT_THAT(neither.errors, HasSubstr("'1;x' is neither a job's number nor a folder. Name one of them."));
}

TEST_F(JobRecordTest, damaged_files_are_told_of_as_far_as_they_go) {
  const fs::path file = folder.path() / "train_cifar-17.attempts.jsonl";
  const std::string whole = read_file(file, 1 << 16);
  for (std::uint64_t round = 0; round < mutation_rounds(100); ++round) {
    write_file_atomically(file, mutated(whole, round));
    const JobRecord record = find_job(17, parse_scontrol_job(mutated(scontrol, round)), folder.path());
    EXPECT_THAT(job_text(record), StartsWith("job         17"));
  }
}

}  // namespace
}  // namespace lockstep
