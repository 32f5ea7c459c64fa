#include "slurm/retry/evidence.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temporary_folder.hpp"

namespace lockstep::evidence_test {

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

}  // namespace lockstep::evidence_test
