#include "slurm/retry/evidence.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "support/temporary_folder.hpp"

namespace lockstep {
namespace {

class EvidenceTest : public testing::Test {
 protected:
  void write(const std::filesystem::path& name, const std::string& text) const {
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    std::ofstream(folder_.path() / name) << text;
  }
  TemporaryFolder folder_;
};

TEST_F(EvidenceTest, kills_are_read_from_the_jobs_group_of_version_2) {
  write("system.slice/slurmstepd.scope/job_17/memory.events", "low 0\nhigh 0\nmax 12\noom 2\noom_kill 2\n");
  write("system.slice/slurmstepd.scope/job_17/step_0/memory.events", "oom_kill 2\n");
  constexpr const char* groups = "0::/system.slice/slurmstepd.scope/job_17/step_batch/user/task_0\n";
  EXPECT_EQ(oom_kills(groups, folder_.path(), 17), 2);
  EXPECT_EQ(oom_kills(groups, folder_.path(), 1), 0) << "of another job";
  EXPECT_EQ(oom_kills("0::/system.slice/job_170\n", folder_.path(), 17), 0);
  EXPECT_EQ(oom_kills("0::/../job_17/step_batch\n", folder_.path(), 17), 0);
  EXPECT_EQ(oom_kills("", folder_.path(), 17), 0);
}

TEST_F(EvidenceTest, and_of_version_1_where_each_group_counts_its_own) {
  write("memory/slurm/uid_0/job_17/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
  write("memory/slurm/uid_0/job_17/step_0/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
  constexpr const char* groups = "9:cpuset:/slurm/uid_0/job_17\n4:memory:/slurm/uid_0/job_17/step_batch\n0::/\n";
  EXPECT_EQ(oom_kills(groups, folder_.path(), 17), 1);
  EXPECT_EQ(oom_kills("4:memory:/process_api/9d82\n", folder_.path(), 17), 0);
}

TEST_F(EvidenceTest, the_newest_checkpoint_is_that_of_the_latest_step) {
  EXPECT_FALSE(newest_checkpoint(folder_.path() / "nowhere"));
  EXPECT_FALSE(newest_checkpoint(folder_.path()));
  for (const char* name : {"step-000000000040.h5", "step-000000000312.h5", "step-000000000099.h5", "step-many.h5",
                           ".step-000000009999.h5.0123456789abcdef.lockstep-partial", "step-999.txt", "lock"}) {
    write(name, "");
  }
  std::filesystem::create_directories(folder_.path() / "step-000000000999.h5");
  const std::optional<NewestCheckpoint> newest = newest_checkpoint(folder_.path());
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->step, 312);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  EXPECT_NEAR(static_cast<double>(newest->written), std::chrono::duration<double>(now).count(), 100);
}

TEST_F(EvidenceTest, of_a_log_this_attempts_end_is_read) {
  write("log", "attempt 0 ran out of memory\nattempt 1 did not\n");
  EXPECT_EQ(read_log_tail(folder_.path() / "log", 28), "attempt 1 did not\n");
  EXPECT_EQ(read_log_tail(folder_.path() / "log", 1000), "") << "it was cut meanwhile";
  EXPECT_EQ(read_log_tail(folder_.path() / "nowhere", 0), "");
  EXPECT_EQ(bytes_of(folder_.path() / "log"), 46);
  EXPECT_EQ(bytes_of(folder_.path() / "nowhere"), 0);
  write("long", std::string(100'000, 'a') + "end");
  const std::string tail = read_log_tail(folder_.path() / "long", 5);
  EXPECT_EQ(tail.size(), 65536U);
  EXPECT_TRUE(tail.ends_with("aend"));
}

TEST_F(EvidenceTest, a_verdict_that_cannot_be_read_is_none) {
  EXPECT_FALSE(read_exit_report(folder_.path() / "nowhere"));
  EXPECT_FALSE(read_exit_report(folder_.path()));
  write("verdict", R"({"code": 79, "sentence": "it diverged"})");
  EXPECT_EQ(read_exit_report(folder_.path() / "verdict")->code, 79);
}

}  // namespace
}  // namespace lockstep
